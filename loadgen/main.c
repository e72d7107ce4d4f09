/* sluice-load: generated publishers and thousands of real viewers, and what they measured. */
#include "loadgen/options.h"
#include "loadgen/run.h"

enum { WRONG_USAGE = 2 };

int main(int argc, char **argv)
{
	char error[OPTIONS_ERROR_BYTES];
	struct options options;

	switch (options_parse(&options, argc, argv, error)) {
	case OPTIONS_HELP:
		fputs(options_help(), stdout);
		return 0;
	case OPTIONS_VERSION:
		puts("sluice-load " SLUICE_VERSION);
		return 0;
	case OPTIONS_WRONG:
		fprintf(stderr, "sluice-load: %s\n", error);
		return WRONG_USAGE;
	case OPTIONS_RUN:
		break;
	}
	return run(&options);
}
