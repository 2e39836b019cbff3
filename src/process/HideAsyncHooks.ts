/**
 * Hides `node:async_hooks` from Effect. Must be the first import of every entry, since Effect looks for the module
 * once, while it loads.
 *
 * Effect 4.1.0 makes an `AsyncResource` at every yield of a fiber (internal/effect.ts, `captureAsyncContext`) and
 * resumes the fiber in its scope. Deno 2.9.6 keeps each resource reachable from the resource in whose scope it was
 * made, so a loop that never ends keeps its whole past: 35 KB a second at rest, a gigabyte within half an hour of load,
 * and collections that stop the process for seconds. Without the module Effect makes no resources. Our code reads no
 * AsyncLocalStorage across fibers: a fiber carries its own context.
 *
 * The module is hidden on Node, too, so that both runtimes run the same code. test/src/process/HideAsyncHooks.test.ts
 * fails once Deno no longer needs this.
 */
import process from "node:process"

const found = process.getBuiltinModule

process.getBuiltinModule =
  ((id: string) => id === "node:async_hooks" ? undefined : found.call(process, id)) as typeof process.getBuiltinModule
