#include "data/download.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <curl/curl.h>

enum { TRIES = 3, CONNECT_S = 20, SLOW_BYTES_S = 100, SLOW_S = 60, REDIRECTS_MAX = 5 };

typedef struct {
    const rp_download *download;
    FILE *file;
    uint64_t written;
    bool too_long;
    int problem; /* errno of a failed write; 0: no error */
} sink;

static size_t write_part(char *bytes, size_t size, size_t count, void *context) {
    sink *to = context;
    const size_t part = size * count;
    if (part > to->download->bytes - to->written) {
        to->too_long = true;
        return 0; /* ends the transfer */
    }
    if (fwrite(bytes, 1, part, to->file) != part) {
        to->problem = errno;
        return 0;
    }
    to->written += part;
    return part;
}

static int show_progress(void *context, curl_off_t all, curl_off_t got, curl_off_t up_all,
                         curl_off_t up) {
    const sink *to = context;
    (void)all;
    (void)up_all;
    (void)up;
    (void)fprintf(stderr, "\r%3.0f %%", 100.0 * (double)got / (double)to->download->bytes);
    return 0;
}

/* Since 7.85 libcurl takes names instead of bits. An older library at run time refuses the option;
 * ignoring that would allow redirects to any protocol. */
static CURLcode set_protocols(CURL *curl, bool any) {
    CURLcode code;
#if LIBCURL_VERSION_NUM >= 0x075500
    code = curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, any ? "https,http,file" : "https");
    return code != CURLE_OK
               ? code
               : curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, any ? "https,http" : "https");
#else
    const long web = CURLPROTO_HTTPS | (any ? CURLPROTO_HTTP : 0);
    code = curl_easy_setopt(curl, CURLOPT_PROTOCOLS, web | (any ? CURLPROTO_FILE : 0));
    return code != CURLE_OK ? code : curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS, web);
#endif
}

/* Only setting the URL can fail, because libcurl copies it. */
static CURLcode set_options(CURL *curl, sink *to, char *message) {
    const CURLcode code = curl_easy_setopt(curl, CURLOPT_URL, to->download->url);
    (void)curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, message);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, write_part);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, to);
    (void)curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
    (void)curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
    (void)curl_easy_setopt(curl, CURLOPT_MAXREDIRS, (long)REDIRECTS_MAX);
    (void)curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
    (void)curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, (long)SLOW_BYTES_S);
    (void)curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)SLOW_S);
    (void)curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(curl, CURLOPT_USERAGENT, "ringpipe/" RP_VERSION);
    (void)curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, show_progress);
    (void)curl_easy_setopt(curl, CURLOPT_XFERINFODATA, to);
    (void)curl_easy_setopt(curl, CURLOPT_NOPROGRESS, to->download->progress ? 0L : 1L);
    return code != CURLE_OK ? code : set_protocols(curl, to->download->any_protocol);
}

/* Is it an error that a further attempt may not have? */
static bool is_transient(CURLcode code, long status) {
    return code == CURLE_OPERATION_TIMEDOUT || code == CURLE_COULDNT_CONNECT ||
           code == CURLE_RECV_ERROR || code == CURLE_PARTIAL_FILE || code == CURLE_GOT_NOTHING ||
           (code == CURLE_HTTP_RETURNED_ERROR && status >= 500);
}

/* *again: it failed with a transient error. */
static rp_err try_once(CURL *curl, const rp_download *download, bool *again) {
    char message[CURL_ERROR_SIZE] = "";
    long status = 0;
    sink to = {.download = download, .file = fopen(download->target, "wbe")};
    if (!to.file) {
        return rp_fail(RP_ERR_IO, "%s: cannot be written: %s", download->target, strerror(errno));
    }
    CURLcode code = set_options(curl, &to, message);
    code = code == CURLE_OK ? curl_easy_perform(curl) : code;
    (void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    if (fclose(to.file) != 0 && to.problem == 0) {
        to.problem = errno;
    }
    *again = is_transient(code, status);
    if (to.problem) {
        return rp_fail(RP_ERR_IO, "%s: cannot be written: %s", download->target,
                       strerror(to.problem));
    }
    if (to.too_long) {
        return rp_fail(RP_ERR_IO, "it is longer than the official file of %llu bytes",
                       (unsigned long long)download->bytes);
    }
    return code == CURLE_OK
               ? RP_OK
               : rp_fail(RP_ERR_IO, "%s", message[0] ? message : curl_easy_strerror(code));
}

rp_err rp_download_file(const rp_download *download) {
    bool again = true;
    rp_err err = RP_OK;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0) {
        return rp_fail(RP_ERR_MEMORY, "libcurl cannot be initialised");
    }
    CURL *curl = curl_easy_init();
    err = curl ? RP_OK : rp_fail(RP_ERR_MEMORY, "libcurl cannot be initialised");
    for (int i = 0; curl && i < TRIES && again; i++) {
        again = false;
        err = try_once(curl, download, &again);
    }
    if (curl) {
        curl_easy_cleanup(curl);
    }
    curl_global_cleanup();
    if (download->progress) {
        (void)fprintf(stderr, "\r     \r");
    }
    return err;
}
