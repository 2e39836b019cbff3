/**
 * The program with a memory probe. SIGUSR2 collects all garbage and prints one line `live heap <bytes> rss <bytes>`.
 * Needs `--expose-gc`. Imports nothing of the program before its entry, so that the entry's own first import stays the
 * first.
 */
import process from "node:process"

const collect: unknown = Reflect.get(globalThis, "gc")

process.on("SIGUSR2", () => {
  if (typeof collect !== "function") throw new Error("start this program with --expose-gc")
  // Finalizers of the first collection release what the second one frees.
  collect()
  setTimeout(() => {
    collect()
    const { heapUsed, rss } = process.memoryUsage()
    process.stdout.write(`live heap ${heapUsed} rss ${rss}\n`)
  }, 100)
})

await import("../../../src/main.ts")
