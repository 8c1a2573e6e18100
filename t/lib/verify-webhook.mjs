// SPDX-License-Identifier: Apache-2.0
// verify-webhook.mjs: asks the public library whether webhooks are good
//
// node verify-webhook.mjs FOLDER: reads [{secret, headers, body}, ...] from
// stdin; FOLDER is the node_modules with "standardwebhooks". Prints a line for
// each: "good" or why it is not.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(process.argv[2] + "/");
const { Webhook } = require("standardwebhooks");

for (const one of JSON.parse(readFileSync(0, "utf8"))) {
    try {
        new Webhook(one.secret).verify(one.body, one.headers);
        console.log("good");
    }
    catch (error) {
        console.log(String(error.message));
    }
}
