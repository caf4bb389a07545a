/* Prints the sizes, offsets and constants of the header. */
#include "espalier_front.h"

#include <stdio.h>

#define PRINT(name, value) printf("%s %zu\n", name, (size_t) (value))
#define SIZE(name) PRINT(#name, sizeof(espalier_front_##name))
#define OFFSET(name, field) PRINT(#name "." #field, offsetof(espalier_front_##name, field))

int main(void) {
    PRINT("abi", ESPALIER_FRONT_ABI);
    SIZE(text);
    SIZE(pair);
    SIZE(part);
    OFFSET(part, is_file);
    SIZE(request);
    OFFSET(request, token);
    OFFSET(request, key);
    OFFSET(request, tenant);
    OFFSET(request, n_models);
    OFFSET(request, body);
    OFFSET(request, n_headers);
    OFFSET(request, n_parts);
    SIZE(head);
    OFFSET(head, ping_ms);
    OFFSET(head, n_headers);
    SIZE(usage);
    OFFSET(usage, generated);
    SIZE(core);
    OFFSET(core, call_next);
    OFFSET(core, call_free);
    OFFSET(core, core_log);
    SIZE(options);
    OFFSET(options, key_file);
    OFFSET(options, access_log);
    OFFSET(options, certificate);
    OFFSET(options, client_ca);
    OFFSET(options, max_body);
    OFFSET(options, counts_tokens);
    OFFSET(options, header_ms);
    OFFSET(options, max_connections);
    PRINT("more", ESPALIER_FRONT_MORE);
    PRINT("end", ESPALIER_FRONT_END);
    PRINT("pending", ESPALIER_FRONT_PENDING);
    PRINT("blocks", ESPALIER_FRONT_BLOCKS);
    PRINT("loading", ESPALIER_FRONT_LOADING);
    PRINT("ready", ESPALIER_FRONT_READY);
    PRINT("stopping", ESPALIER_FRONT_STOPPING);
    PRINT("health", ESPALIER_FRONT_HEALTH);
    PRINT("monitor", ESPALIER_FRONT_MONITOR);
    PRINT("anthropic", ESPALIER_FRONT_ANTHROPIC);
    PRINT("metrics", ESPALIER_FRONT_METRICS);
    PRINT("dispatch", ESPALIER_FRONT_DISPATCH);
    PRINT("error", ESPALIER_FRONT_ERROR);
    PRINT("warning", ESPALIER_FRONT_WARNING);
    PRINT("info", ESPALIER_FRONT_INFO);
    return 0;
}
