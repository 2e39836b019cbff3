/** The yardstick: a loop that signs and POSTs from memory, 64 in flight, and writes nothing anywhere. */
import "../../src/process/HideAsyncHooks.ts"
import { loop } from "./loop.ts"
import { post } from "./post.ts"

await loop(post)
