module sluice/pion

go 1.19
