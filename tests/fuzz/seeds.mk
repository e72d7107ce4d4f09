# seeds_NAME: folders of the project; corpora_NAME: kinds in $(CORPORA).
seeds_fuzz_sdp     := tests/fixtures/offers
corpora_fuzz_sdp   := sdp
seeds_fuzz_sdpfrag := tests/fixtures/offers/sdpfrag
seeds_fuzz_stun    := tests/fixtures/packets
corpora_fuzz_stun  := stun
corpora_fuzz_rtp   := rtp
corpora_fuzz_rtcp  := rtcp

# fuzz_plane and fuzz_layers run whole relays: the parts of tests/server that make them.
kits_fuzz_plane    := tests/server/kit_plane.c tests/server/kit_peer.c tests/server/kit_loop.c \
		      tests/server/kit_stream.c tests/server/kit_wire.c
wraps_fuzz_plane    = $(FAULTS_server)
kits_fuzz_layers   := $(kits_fuzz_plane) tests/server/kit_layers.c tests/server/kit_decoder.c
wraps_fuzz_layers   = $(FAULTS_server)
