/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c: feeds the files of corpus folders to a fuzz target, as TAP */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Feed the file at PATH to the target from a block of exactly its size, so
 * that a sanitizer sees every byte read beyond it. Return 1 on success. */
static int replay_file(const char *path)
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
            ok = LLVMFuzzerTestOneInput(data, (size_t)size) == 0;
        }
        free(data);
    }
    fclose(file);
    return ok;
}

int main(int argc, char **argv)
{
    int number = 0, failed = 0;

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
            if (replay_file(path)) {
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
