/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c: feeds the files of corpus folders to a fuzz target, as TAP; or, with
 * --cost, the files named, so that callgrind counts the instructions for each
 * (t/95-cost.t) */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__has_include)
#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#endif
#endif
#ifndef CALLGRIND_ZERO_STATS
#define CALLGRIND_ZERO_STATS
#define CALLGRIND_DUMP_STATS_AT(name) (void)(name)
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Feed the SIZE bytes at DATA to the target. If NAME is not NULL, let callgrind
 * write what that costs, under NAME. */
static int feed(const uint8_t *data, size_t size, const char *name)
{
    int ok;

    if (name) {
        CALLGRIND_ZERO_STATS;
    }
    ok = LLVMFuzzerTestOneInput(data, size) == 0;
    if (name) {
        CALLGRIND_DUMP_STATS_AT(name);
    }
    return ok;
}

/* Feed the file at PATH to the target from a block of exactly its size, so
 * that a sanitizer sees every byte read beyond it. Return 1 on success. NAME: see feed(). */
static int replay_file(const char *path, const char *name)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = NULL;
    long size;
    int ok = 0;

    if (!file) {
        return 0;
    }
    if (fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) >= 0) {
        rewind(file);
        data = malloc(size ? (size_t)size : 1);
        if (data && fread(data, 1, (size_t)size, file) == (size_t)size) {
            ok = feed(data, (size_t)size, name);
        }
        free(data);
    }
    fclose(file);
    return ok;
}

/* Count what each of the COUNT files at PATHS costs. The first of three of a kind
 * is fed before: what is made at the first use is not counted. */
static int count_cost(char **paths, int count)
{
    for (int i = 0; i < count; i++) {
        if ((i % 3 == 0 && !replay_file(paths[i], NULL))
            || !replay_file(paths[i], paths[i])) {
            fprintf(stderr, "%s\n", paths[i]);
            return 1;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    int number = 0, failed = 0;

    if (argc > 1 && !strcmp(argv[1], "--cost")) {
        return count_cost(argv + 2, argc - 2);
    }

    for (int i = 1; i < argc; i++) {
        DIR *dir = opendir(argv[i]);
        struct dirent *entry;

        while (dir && (entry = readdir(dir))) {
            char path[4096];

            if (entry->d_name[0] == '.') {
                continue;
            }
            snprintf(path, sizeof(path), "%s/%s", argv[i], entry->d_name);
            number++;
            if (replay_file(path, NULL)) {
                printf("ok %d - %s\n", number, entry->d_name);
            }
            else {
                printf("not ok %d - %s\n", number, path);
                failed++;
            }
        }
        if (dir) {
            closedir(dir);
        }
    }
    printf("1..%d\n", number);
    return failed || !number;
}
