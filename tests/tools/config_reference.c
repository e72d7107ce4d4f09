/* Prints docs/config.md: make docs/config.md */
#include "config/config.h"

int main(void)
{
	config_print_reference(stdout);
	return 0;
}
