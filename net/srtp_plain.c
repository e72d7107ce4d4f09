/* net/srtp_plain.c - contexts that protect nothing: what plain RTP is sent through. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/srtp_internal.h"
#include "net/srtp_record.h"

static void tx_destroy(struct seal_tx *tx)
{
	free(tx);
}

static size_t tx_bytes(const struct seal_tx *tx)
{
	return sizeof(*tx);
}

static void copy_rtp(struct seal_engine *e, const struct seal_job *jobs, size_t n)
{
	(void)e;
	for (size_t i = 0; i < n; i++) {
		const struct seal_job *job = &jobs[i];
		uint8_t *out = job->out;

		memcpy(out, job->header, job->header_bytes);
		out += job->header_bytes;
		if (job->lead_bytes)
			memcpy(out, job->lead, job->lead_bytes);
		memcpy(out + job->lead_bytes, job->payload, job->payload_bytes);
	}
}

const struct seal_ops seal_ops_plain = {
	.name = "plain",
	.tx_destroy = tx_destroy,
	.tx_bytes = tx_bytes,
	.seal_rtp = copy_rtp,
};

int seal_tx_create_plain(struct seal_tx **out, struct seal_engine *e)
{
	struct seal_tx *tx = calloc(1, sizeof(*tx));

	*out = NULL;
	if (!tx)
		return -ENOMEM;
	tx->ops = &seal_ops_plain;
	tx->profile = (enum seal_profile)SEAL_PLAIN;
#ifdef SLUICE_DEBUG
	if (seal_record_create(&tx->record)) {
		free(tx);
		return -ENOMEM;
	}
#endif
	e->has_plain = true;
	*out = tx;
	return 0;
}
