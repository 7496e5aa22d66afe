/* The keyed hash that stands for all arithmetic: eight bytes a step, each multiplied and folded, so that one changed bit
 * changes about half of what comes out. It need not resist anybody, only be fast under emulation and spread well. */
#include <string.h>

#include "stand_in.h"

static uint64_t mixed(uint64_t value) {
    value ^= value >> 32;
    value *= 0xd6e8feb86659fd93ull;
    value ^= value >> 29;
    value *= 0xc2b2ae3d27d4eb4full;
    return value ^ value >> 32;
}

void hash_number(struct hash *hash, uint64_t number) {
    hash->state = mixed((hash->state + 0x9e3779b97f4a7c15ull) ^ (number * 0xff51afd7ed558ccdull));
}

void hash_begin(struct hash *hash, uint64_t purpose) {
    hash->state = mixed(settings()->key);
    hash_number(hash, purpose);
}

void hash_bytes(struct hash *hash, const uint8_t *data, size_t size) {
    uint64_t word;
    for (; size >= sizeof word; data += sizeof word, size -= sizeof word) {
        memcpy(&word, data, sizeof word);
        hash_number(hash, word);
    }
    if (size > 0) {
        word = 0;
        memcpy(&word, data, size);
        hash_number(hash, word ^ (uint64_t)size << 56);
    }
}

void hash_spread(const struct hash *hash, uint64_t position, uint8_t *out, size_t size) {
    struct hash at = *hash;
    hash_number(&at, position);
    while (size > 0) {
        size_t part = size < sizeof at.state ? size : sizeof at.state;
        hash_number(&at, size);
        memcpy(out, &at.state, part);
        out += part, size -= part;
    }
}
