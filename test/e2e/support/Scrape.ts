/** What a program's port for metrics serves, and docs/metrics.md. */
import { Effect } from "effect"
import { readFileSync } from "node:fs"

/** The types of metrics by their names. */
export type MetricTypes = ReadonlyMap<string, string>

/** The metrics that the page lists. */
export const documentedMetrics = (): MetricTypes =>
  new Map(
    [...readFileSync("docs/metrics.md", "utf8").matchAll(/^\| `(bailiwick_\w+)` \| (\w+) \|/gm)]
      .map(([, name, type]) => [name!, type!]),
  )

/** Scrapes once. */
export const scrape = (port: number) =>
  Effect.promise(async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/metrics`)
    const text = await answer.text()
    const types: MetricTypes = new Map(
      [...text.matchAll(/^# TYPE (bailiwick_\w+) (\w+)$/gm)].map(([, name, type]) => [name!, type!]),
    )
    return { text, types }
  })
