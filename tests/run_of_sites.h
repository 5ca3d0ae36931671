/* For tests: a run file with three sites. Include it after folder.h. */
#ifndef RP_TESTS_RUN_OF_SITES_H
#define RP_TESTS_RUN_OF_SITES_H

#include "run_of.h"

#include "data/split_file.h"

enum { SITES = 3, SAMPLES = 64 };

/* Sites 0 to 2 have 32, 20 and 12 samples. Writes split.json and returns the path of a run file
 * with these keys of `sites`, and with more lines. */
static inline const char *write_sites(const char *keys, const char *more) {
    static const char *const names[SITES] = {"site-0", "site-1", "site-2"};
    static const uint32_t counts[SITES] = {32, 20, 12};
    static uint32_t sample[SAMPLES];
    rp_site_samples site[SITES];
    char digest[RP_SPLIT_DIGEST];
    char lines[900];
    uint32_t first = 0;
    rp_runfile whole;
    read_run(&whole, GPIPE "cut: [fc2]\n");
    expect_ok(rp_data_split_digest(&whole.data, digest));
    rp_runfile_close(&whole);
    for (uint32_t i = 0; i < SAMPLES; i++) {
        sample[i] = i;
    }
    for (uint32_t i = 0; i < SITES; i++) {
        site[i] =
            (rp_site_samples){.name = names[i], .train = sample + first, .train_count = counts[i]};
        first += counts[i];
    }
    const rp_split_list list = {.set = "glyphs",
                                .digest = digest,
                                .rule = "iid",
                                .samples = SAMPLES,
                                .site = site,
                                .sites = SITES};
    expect_ok(rp_split_file_write(in_folder("split.json"), &list));
    (void)snprintf(lines, sizeof lines, GPIPE "cut: [fc2]\nsites: {split: %s/split.json, %s}\n%s",
                   folder, keys, more);
    return write_run(lines);
}

#endif
