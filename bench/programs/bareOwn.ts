/** The bare loop with the product's own sender instead of undici: what is left beside it is what durability costs. */
import "../../src/process/HideAsyncHooks.ts"
import { ownPost } from "./ownPost.ts"
import { loop } from "./loop.ts"

await loop(ownPost)
