/* SPDX-License-Identifier: Apache-2.0 */
/* crmapid_generate.c: the choice of a generator */
#include "crmapid_generate.h"

#include <string.h>

const crmd_generator_t *crmd_generator_of(const crmd_config_t *config)
{
    return strcmp(config->generator, crmd_generator_openai.name)
           ? &crmd_generator_template : &crmd_generator_openai;
}
