# make                 release build: build/sluice, build/sluice-load
# make demo            relay one generated stream to 1,000 viewers and print what held
# make test            everything below that decides; make check is the fast part of it
# make help            all targets
V     ?= release
BUILD ?= build
B     := $(BUILD)/$(V)

VERSION := 0.1.0

SAN         := -O1 -g -fno-omit-frame-pointer -fno-sanitize-recover=all
OPT_debug   := -O0 -g3 -DSLUICE_DEBUG=1
OPT_release := -O2 -g -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fstack-clash-protection \
               -fcf-protection -fPIE
OPT_asan    := $(SAN) -fsanitize=address,undefined -DSLUICE_DEBUG=1
OPT_tsan    := $(SAN) -fsanitize=thread -DSLUICE_DEBUG=1
OPT_cov     := -O0 -g --coverage -DSLUICE_DEBUG=1
OPT_fuzz    := $(SAN) -fsanitize=fuzzer-no-link,address,undefined -DSLUICE_DEBUG=1
$(if $(OPT_$(V)),,$(error V=$(V) is not a variant: debug, release, asan, tsan, cov or fuzz))

LINK_release := -pie -Wl,-z,relro,-z,now

CPPFLAGS += -I. -D_GNU_SOURCE -DSLUICE_VERSION='"$(VERSION)"' -include banned.h
CFLAGS   += -std=c11 $(OPT_$(V)) -pthread -Wall -Wextra -Wshadow -Wconversion -Wvla -Wundef \
            -Wformat=2 -Wstrict-prototypes -Wmissing-prototypes -Werror
LDFLAGS  += $(filter-out -D%,$(OPT_$(V))) $(LINK_$(V)) -pthread

# Intel's multi-buffer library exists on x86-64 only; elsewhere OpenSSL carries every peer.
ifneq ($(filter x86_64-%,$(shell $(CC) -dumpmachine)),)
CPPFLAGS   += -DSLUICE_IPSECMB=1
LIB_ipsecmb := -lIPSec_MB
else
CPPFLAGS   += -DSLUICE_IPSECMB=0
endif

LIB_pool    :=
LIB_media   := -lm
LIB_net     := -luv -lssl -lcrypto $(LIB_ipsecmb) -lsrtp2
LIB_config  := -lcyaml -lyaml
LIB_server  := -lmicrohttpd -ljansson -ljwt -lhiredis
LIB_loadgen := -lvpx -lopus -ljansson -lcurl -lm

objs = $(patsubst %.c,$(B)/%.o,$(wildcard $(addsuffix /*.c,$(1))))
lib  = $(foreach l,$(1),$(B)/lib$(l).a)

.PHONY: all check layers lint clean FORCE
.DELETE_ON_ERROR:
all: $(BUILD)/sluice $(BUILD)/sluice-load

LAYERS := pool media net config server loadgen
SERVER_LIBS  := server net media config pool
LOADGEN_LIBS := loadgen net media config pool

# A main() cannot live in a library that test programs link.
$(foreach l,$(LAYERS),$(eval $(B)/lib$(l).a: $(filter-out %/main.o,$(call objs,$(l)))))
$(B)/lib%.a:
	@mkdir -p $(@D)
	@rm -f $@
	$(AR) rcs $@ $^

$(B)/sluice: $(B)/server/main.o $(call lib,$(SERVER_LIBS))
	$(CC) $(LDFLAGS) -o $@ $^ $(foreach l,$(SERVER_LIBS),$(LIB_$(l)))
$(B)/sluice-load: $(B)/loadgen/main.o $(call lib,$(LOADGEN_LIBS))
	$(CC) $(LDFLAGS) -o $@ $^ $(foreach l,$(LOADGEN_LIBS),$(LIB_$(l)))
$(BUILD)/sluice: $(B)/sluice
	@ln -sf $(V)/sluice $@
$(BUILD)/sluice-load: $(B)/sluice-load
	@ln -sf $(V)/sluice-load $@

# Unit tests: one program a folder. A layer's tests link that layer and what it may include, so
# media/ code that reaches for libuv, OpenSSL or an SRTP library does not link.
FAULTS := calloc malloc realloc aligned_alloc mmap
UNITS  := $(foreach l,$(LAYERS),$(if $(wildcard tests/$(l)/test_*.c),$(l)))
needs_pool    := pool
needs_media   := media pool
needs_net     := net pool
needs_config  := config
needs_server  := $(SERVER_LIBS)
needs_loadgen := $(LOADGEN_LIBS)
define unit_rule
$(B)/test_$(1): $(call objs,tests/$(1) tests) $(call lib,$(needs_$(1)))
	$$(CC) $$(LDFLAGS) $$(FAULTS:%=-Wl,--wrap=%) -o $$@ $$^ $(foreach l,$(needs_$(1)),$(LIB_$(l))) -lcriterion
run-unit-$(1): $(B)/test_$(1)
	@rm -f $(B)/san.$(1).*
	ASAN_OPTIONS=log_path=$(B)/san.$(1) UBSAN_OPTIONS=print_stacktrace=1 timeout 300 $$< $$(CRITERION)
	@! cat $(B)/san.$(1).* 2>/dev/null
.PHONY: run-unit-$(1)
endef
$(foreach l,$(UNITS),$(eval $(call unit_rule,$(l))))

# Criterion ignores a worker's exit status, so sanitizer reports are caught by their log files.
check: $(UNITS:%=run-unit-%)

# Threads: plain programs, since Criterion aborts under ThreadSanitizer.
STRESS := $(patsubst tests/stress/%.c,%,$(wildcard tests/stress/stress_*.c))
$(B)/stress_%: $(B)/tests/stress/stress_%.o $(call lib,net media pool)
	$(CC) $(LDFLAGS) -o $@ $^ $(LIB_net) $(LIB_media)
run-%: $(B)/%
	TSAN_OPTIONS=halt_on_error=1 timeout 120 $<
stress: $(STRESS:%=run-%)
.PHONY: stress

# Fuzzers: make fuzz V=fuzz CC=clang-14 FUZZ_SECONDS=30
FUZZ_SECONDS ?= 5
FUZZERS := $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
$(B)/fuzz_%: $(B)/tests/fuzz/fuzz_%.o $(call lib,$(SERVER_LIBS))
	$(CC) $(LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(foreach l,$(SERVER_LIBS),$(LIB_$(l)))

$(B)/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

# Changes only when the command line does: a new flag or compiler rebuilds everything.
$(B)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CC) $(CPPFLAGS) $(CFLAGS)' | cmp -s - $@ || echo '$(CC) $(CPPFLAGS) $(CFLAGS)' >$@

# The page of settings is printed from the schema; a unit test fails when it is old.
$(B)/config_reference: $(B)/tests/tools/config_reference.o $(B)/libconfig.a
	$(CC) $(LDFLAGS) -o $@ $^ $(LIB_config)
docs/config.md: $(B)/config_reference
	@mkdir -p $(@D)
	$< >$@

may_include_pool    := pool
may_include_config  := config
may_include_media   := media|pool
may_include_net     := net|pool
may_include_server  := server|net|media|pool|config
may_include_loadgen := loadgen|net|media|pool|config
layers: $(LAYERS:%=layer-%)
layer-%:
	@! grep -rnE --include='*.[ch]' '^#include "' $* | grep -vE '"($(may_include_$*))/'

SOURCES = $(shell git ls-files '*.[ch]')
lint:
	clang-format --dry-run -Werror $(SOURCES)
	clang-tidy --quiet --warnings-as-errors='*' $(filter-out tests/%,$(filter %.c,$(SOURCES))) -- $(CPPFLAGS) -std=c11
	cppcheck --quiet --error-exitcode=1 --inline-suppr --enable=warning,performance,portability $(CPPFLAGS) $(LAYERS)

clean:
	rm -rf $(BUILD)

-include $(shell find $(B) -name '*.d' 2>/dev/null)
