/**
 * The bare loop with the product's own sender instead of undici: the difference to the product is the cost of
 * durability.
 */
import "../../../src/process/HideAsyncHooks.ts"
import { ownPost } from "../measured/OwnPost.ts"
import { loop } from "./BareLoop.ts"

await loop(ownPost)
