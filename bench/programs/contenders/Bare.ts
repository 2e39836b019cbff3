/** The yardstick: a loop that signs and POSTs from memory, 64 in flight, and writes nothing anywhere. */
import "../../../src/process/HideAsyncHooks.ts"
import { loop } from "./BareLoop.ts"
import { post } from "./UndiciPost.ts"

await loop(post)
