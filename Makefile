# make        release build: build/sluice and build/sluice-load
# make demo   relay one generated stream to 1,000 viewers and print what held
# make test   everything that decides; make check is its fast part
# make help   all targets
V      ?= release
BUILD  ?= build
PREFIX ?= /usr/local
CLANG  ?= clang-14
B      := $(BUILD)/$(V)

VERSION := 0.1.0

SAN         := -O1 -g -fno-omit-frame-pointer -fno-sanitize-recover=all
OPT_debug   := -O0 -g3 -DSLUICE_DEBUG=1
OPT_release := -O2 -g -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fstack-clash-protection -fPIE
OPT_asan    := $(SAN) -fsanitize=address,undefined -DSLUICE_DEBUG=1
OPT_tsan    := $(SAN) -fsanitize=thread -DSLUICE_DEBUG=1
OPT_cov     := -O0 -g --coverage -DSLUICE_DEBUG=1
OPT_fuzz    := $(SAN) -fsanitize=fuzzer-no-link,address,undefined -DSLUICE_DEBUG=1
$(if $(OPT_$(V)),,$(error V=$(V) is not a variant: debug, release, asan, tsan, cov or fuzz))

LINK_release := -pie -Wl,-z,relro,-z,now,-z,noexecstack,-z,separate-code

CPPFLAGS += -I. -D_GNU_SOURCE -DSLUICE_VERSION='"$(VERSION)"' -include banned.h

# Intel's multi-buffer library exists on x86-64 only; elsewhere OpenSSL carries every peer.
ifneq ($(filter x86_64-%,$(shell $(CC) -dumpmachine 2>/dev/null)),)
OPT_release += -fcf-protection
CPPFLAGS    += -DSLUICE_IPSECMB=1
LIB_ipsecmb := -lIPSec_MB
else
CPPFLAGS    += -DSLUICE_IPSECMB=0
endif

CFLAGS  += -std=c11 $(OPT_$(V)) -pthread -Wall -Wextra -Wshadow -Wconversion -Wvla -Wundef \
           -Wformat=2 -Wstrict-prototypes -Wmissing-prototypes -Werror
LDFLAGS += $(filter-out -D%,$(OPT_$(V))) $(LINK_$(V)) -pthread -Wl,--as-needed

LIB_pool    :=
LIB_media   := -lm
LIB_net     := -luv -lssl -lcrypto $(LIB_ipsecmb) -lsrtp2
LIB_config  := -lcyaml -lyaml
LIB_server  := -lmicrohttpd -ljansson -ljwt -lhiredis
LIB_loadgen := -lvpx -lopus -ljansson -lcurl -lsrtp2 -lm
LIB_tools   :=
LIB_bench   :=

# What a layer's programs link, in link order: the layer and what it may include. A unit test of
# media/ that reaches for libuv, OpenSSL or an SRTP library therefore does not link.
LAYERS        := pool media net config server loadgen
needs_pool    := pool
needs_media   := media pool
needs_net     := net pool
needs_config  := config
needs_server  := server net media config pool
needs_loadgen := loadgen net media config pool
needs_tools   := tools pool
needs_bench   := bench loadgen net pool
needs_http    := $(needs_server)
needs_sim     := tools media pool
LINK_ORDER    := bench tools loadgen server net media config pool

objs     = $(patsubst %.c,$(B)/%.o,$(wildcard $(addsuffix /*.c,$(1))))
lib      = $(foreach l,$(1),$(B)/lib$(l).a)
lib_args = $(foreach l,$(1),$(LIB_$(l)))
# The libraries that a program's own includes call for.
included = $(patsubst tests/%,%,$(shell sed -nE 's,^.include "((tests/)?[a-z]+)/.*,\1,p' $(1)))
needed   = $(filter $(foreach l,$(call included,$(1)),$(needs_$(l))),$(LINK_ORDER))

# One short line a step; VERBOSE=1 shows the commands.
Q = $(if $(VERBOSE),,@echo '  $(notdir $(CC)) $@'; )

.DELETE_ON_ERROR:
.PHONY: all FORCE
all: $(BUILD)/sluice $(BUILD)/sluice-load

# A main() cannot live in a library that test programs link.
$(foreach l,$(LAYERS),$(eval $(B)/lib$(l).a: $(filter-out %/main.o,$(call objs,$(l)))))
$(B)/lib%.a:
	@mkdir -p $(@D)
	@rm -f $@
	@$(AR) rcs $@ $^

# Rules for a program: its name, its source.
define program_rule
$(B)/$(1): $(B)/$(2:.c=.o) $(call lib,$(call needed,$(2)))
	$$(Q)$$(CC) $$(LDFLAGS) -o $$@ $$^ $(call lib_args,$(call needed,$(2)))
endef

$(B)/sluice: $(B)/server/main.o $(call lib,$(needs_server))
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(call lib_args,$(needs_server))
$(B)/sluice-load: $(B)/loadgen/main.o $(call lib,$(needs_loadgen))
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(call lib_args,$(needs_loadgen))

$(B)/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

# Changes only when the command line does: a new flag or compiler rebuilds everything.
$(B)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CC) $(CPPFLAGS) $(CFLAGS)' | cmp -s - $@ || echo '$(CC) $(CPPFLAGS) $(CFLAGS)' >$@

# --- People -----------------------------------------------------------------------------------

.PHONY: help demo run install clean deps-build deps-demo deps-test deps-lint
help:
	@echo 'make            release build: $(BUILD)/sluice, $(BUILD)/sluice-load'
	@echo 'make demo       install what is missing, build, relay one stream to 1,000 viewers'
	@echo 'make run        start the relay with its defaults'
	@echo 'make install    into DESTDIR= PREFIX= ($(PREFIX))'
	@echo
	@echo 'make test       install what tests need, then run all of them'
	@echo 'make check      unit tests (CRITERION="--filter nack/*" passes arguments on)'
	@echo 'make run-unit-media      unit tests of one folder'
	@echo 'make stress V=tsan       threads under ThreadSanitizer'
	@echo 'make sim        whole relays, peers and bad links in memory, seeded, on a fake clock'
	@echo 'make e2e        real sockets, real clients;  make browser: Chromium'
	@echo 'make interop    every client of docs/interop.md, which it writes anew'
	@echo 'make fuzz       every fuzzer, FUZZ_SECONDS=$(FUZZ_SECONDS) FUZZ_SEED=$(FUZZ_SEED) each;  make run-fuzz_stun: one'
	@echo 'make bench      measurements, printed and not judged'
	@echo 'make lint       clang-format, clang-tidy, cppcheck;  make layers: who includes what'
	@echo 'make format     clang-format in place'
	@echo
	@echo 'V=release|debug|asan|tsan|cov|fuzz builds under $(BUILD)/V/;  CC=$(CLANG) works as well;  VERBOSE=1'

deps-build deps-demo deps-test deps-lint: deps-%:
	@packaging/deps.sh $*

# A make of its own after the packages are there: this one has looked at the compiler already.
demo: deps-demo
	@$(MAKE) --no-print-directory all
	@packaging/demo.sh $(BUILD)/sluice $(BUILD)/sluice-load

run: all
	@echo 'publish: http://127.0.0.1:8080/publish/live'
	@echo 'watch:   http://127.0.0.1:8080/watch/live'
	@exec $(BUILD)/sluice

install: all
	install -d $(DESTDIR)$(PREFIX)/bin
	install -m 755 $(B)/sluice $(B)/sluice-load $(DESTDIR)$(PREFIX)/bin

clean:
	rm -rf $(BUILD)

# --- Unit tests: one program a folder ---------------------------------------------------------

.PHONY: test check sim stress e2e browser interop bench tools
FAULTS := calloc malloc realloc aligned_alloc mmap
# Entry points of a layer's libraries; wrapped in tests/LAYER.
FAULTS_net := sendmmsg sendmsg srtp_create $(if $(LIB_ipsecmb),alloc_mb_mgr)
# tests/server runs whole relays on wires of its own (kit_wire.h).
FAULTS_server := sendmmsg sendmsg pthread_mutex_lock
, := ,
UNITS  := $(foreach l,$(LAYERS) tools http sim,$(if $(wildcard tests/$(l)/test_*.c),$(l)))

# tests/http drives the HTTP side to every answer of a registry it brings itself, so it is a program
# apart from tests/server.

# Criterion ignores a worker's exit status, so sanitizer reports are caught by their log files.
# Its runner leaks a little by itself when it runs tests side by side.
JOBS_asan := -j1
# Beside a layer's libraries: tests/server lays bad links between a relay and its viewers.
TEST_NEEDS_server := tools
define unit_rule
$(B)/test_$(1): $(patsubst %.c,$(B)/%.o,$(wildcard tests/$(1)/test_*.c tests/$(1)/kit_*.c tests/*.c)) $(call lib,$(TEST_NEEDS_$(1)) $(needs_$(1)))
	$$(Q)$$(CC) $$(LDFLAGS) $$(patsubst %,-Wl$$(,)--wrap=%,$$(FAULTS) $$(FAULTS_$(1))) -o $$@ $$^ $(call lib_args,$(needs_$(1))) -lcriterion
.PHONY: run-unit-$(1)
run-unit-$(1): $(B)/test_$(1)
	@rm -f $(B)/san.$(1).*
	@echo '$(B)/test_$(1) $$(JOBS_$(V)) $$(CRITERION)'; status=0; \
	ASAN_OPTIONS=log_path=$(B)/san.$(1) UBSAN_OPTIONS=print_stacktrace=1:log_path=$(B)/san.$(1) \
		timeout 300 $$< $$(JOBS_$(V)) $$(CRITERION) || status=$$$$?; \
	! cat $(B)/san.$(1).* 2>/dev/null && exit $$$$status
endef
$(foreach l,$(UNITS),$(eval $(call unit_rule,$(l))))

check: $(UNITS:%=run-unit-%)

# --- Programs that judge themselves -----------------------------------------------------------

# tests/run.sh counts these lines.
judge = && echo 'ok $@' || { echo 'FAILED $@'; exit 1; }

# Threads: plain programs, since Criterion aborts under ThreadSanitizer.
names    = $(basename $(notdir $(1)))
STRESS  := $(wildcard tests/stress/stress_*.c)
BENCHES := $(shell grep -lE '^int main\>' tests/bench/*.c)
FUZZERS := $(wildcard tests/fuzz/fuzz_*.c)
TOOLS   := $(shell grep -lE '^int main\>' tests/tools/*.c)
$(foreach p,$(STRESS) $(BENCHES) $(TOOLS),$(eval $(call program_rule,$(call names,$(p)),$(p))))

# build/NAME is the variant built last, for scripts and people.
PROGRAMS := sluice sluice-load $(call names,$(BENCHES) $(TOOLS))
$(PROGRAMS:%=$(BUILD)/%): $(BUILD)/%: $(B)/% FORCE
	@ln -sfn $(V)/$* $@

$(B)/libbench.a: $(patsubst %.c,$(B)/%.o,$(filter-out $(BENCHES),$(wildcard tests/bench/*.c)))
$(B)/libtools.a: $(patsubst %.c,$(B)/%.o,$(filter-out $(TOOLS) tests/tools/test_%,$(wildcard tests/tools/*.c)))

SELF_JUDGING := $(call names,$(STRESS))
.PHONY: $(SELF_JUDGING:%=run-%)
$(SELF_JUDGING:%=run-%): run-%: $(B)/%
	TSAN_OPTIONS=halt_on_error=1 timeout 300 $< $(judge)
stress: $(addprefix run-,$(call names,$(STRESS)))
# Whole relays in memory, and what looks after a link with a simulated one; pictures in build/sim.
sim: CRITERION := --filter plane*/*
sim: run-unit-server run-unit-sim
run-unit-sim: CRITERION :=

tools: $(addprefix $(BUILD)/,$(call names,$(TOOLS)))

# The pages are compiled in as they are (.incbin).
$(B)/server/pages.o: $(wildcard server/pages/*)

# The page of settings is printed from the schema; a unit test fails when it is old.
docs/config.md: $(B)/config_reference
	@mkdir -p $(@D)
	$< >$@

# What these two run: this variant, a debug relay that checks itself, and the npm packages.
MODULES := tests/browser/node_modules/.package-lock.json
.PHONY: e2e-programs modules
e2e-programs: all tools modules
	@$(MAKE) --no-print-directory V=debug $(BUILD)/debug/sluice
modules: $(MODULES)
$(MODULES): tests/browser/package-lock.json
	cd $(<D) && npm ci --no-progress
	@touch $@

e2e: e2e-programs
	@tests/run.sh tests/e2e
browser: e2e-programs
	@tests/run.sh tests/browser
# Clients from Debian and npm, each against a relay of its own; writes docs/interop.md.
interop: all
	@packaging/deps.sh interop
	@npm ci --no-audit --no-fund --loglevel=error --prefix tests/interop
	@tests/interop/run
bench: all tools $(addprefix $(BUILD)/,$(call names,$(BENCHES)))
	@set -e; for script in $(sort $(wildcard tests/bench/bench_*.py)) tests/bench/summary.py; do $$script; done

# The packages first, then by a make that can see them.
test: deps-test
	@tests/run.sh test

# --- Fuzzers: only clang has them -------------------------------------------------------------

# Seeds: tests/fuzz/seeds/NAME, folders named in seeds_NAME, and $(CORPORA)/KIND where the large
# collection lies beside the checkout. What a run finds new is kept in build/corpus/NAME.
FUZZ_SECONDS ?= 5
# The same inputs in the same order each time; 0 draws others, for long runs.
FUZZ_SEED    ?= 1
CORPORA      ?= $(wildcard ../shared/corpora)
include $(wildcard tests/fuzz/seeds.mk)

.PHONY: fuzz fuzz-all
fuzz:
	@$(MAKE) --no-print-directory V=fuzz CC=$(CLANG) fuzz-all
fuzz-all: $(addprefix run-,$(call names,$(FUZZERS)))

define fuzz_rule
$(B)/$(1): $(B)/tests/fuzz/$(1).o $(patsubst %.c,$(B)/%.o,$(kits_$(1))) $(call lib,$(call needed,tests/fuzz/$(1).c))
	$$(Q)$$(CC) $$(LDFLAGS) -fsanitize=fuzzer $$(patsubst %,-Wl$$(,)--wrap=%,$$(wraps_$(1))) -o $$@ $$^ $(call lib_args,$(call needed,tests/fuzz/$(1).c))
.PHONY: run-$(1)
endef
fuzz_names := $(call names,$(FUZZERS))
$(foreach f,$(fuzz_names),$(eval $(call fuzz_rule,$(f))))
ifeq ($(V),fuzz)
$(fuzz_names:%=run-%): run-%: $(B)/%
	@mkdir -p $(BUILD)/corpus/$*
	$< -seed=$(FUZZ_SEED) -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 -verbosity=0 -print_funcs=0 \
		-artifact_prefix=$(BUILD)/$*- $(BUILD)/corpus/$* \
		$(wildcard tests/fuzz/seeds/$* $(seeds_$*) $(addprefix $(CORPORA)/,$(corpora_$*))) $(judge)
else
$(fuzz_names:%=run-%):
	@$(MAKE) --no-print-directory V=fuzz CC=$(CLANG) $@
endif

# --- The sources themselves -------------------------------------------------------------------

.PHONY: layers lint lint-format lint-tidy lint-cppcheck format compile
SOURCES = $(shell git ls-files '*.[ch]')
TIDIED  = $(filter-out tests/%,$(filter %.c,$(SOURCES)))
JOBS   := $(shell nproc)

layers:
	@tests/layers.sh $(LAYERS)

lint: lint-format lint-tidy lint-cppcheck
lint-format:
	@clang-format-14 --dry-run -Werror $(SOURCES)
# One file a process: with several, clang-tidy 14 takes every va_list for uninitialized.
lint-tidy:
	@printf '%s\n' $(TIDIED) | xargs -P $(JOBS) -I{} clang-tidy-14 --quiet \
		--warnings-as-errors='*' {} -- $(CPPFLAGS) -std=c11 2>&1 | \
		grep -vE '^[0-9]+ warnings? generated' | { ! grep . ; }
lint-cppcheck:
	@cppcheck --quiet --error-exitcode=1 --inline-suppr -j $(JOBS) --std=c11 \
		--enable=warning,performance,portability --suppress=missingIncludeSystem \
		$(filter-out -include banned.h,$(CPPFLAGS)) $(wildcard $(LAYERS))
format:
	@clang-format-14 -i $(SOURCES)

# All that compiles in this variant, programs and tests, without running any of it.
compile: all tools $(UNITS:%=$(B)/test_%) $(addprefix $(B)/,$(SELF_JUDGING) $(call names,$(BENCHES)))

-include $(shell find $(B) -name '*.d' 2>/dev/null)
