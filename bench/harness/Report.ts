/** Tables for the terminal and the page, and the JSON beside it. A claim that was not run keeps its last finding. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { cpus, loadavg, platform, release, totalmem } from "node:os"
import { join } from "node:path"
import process from "node:process"
import type { Finding } from "./Claim.ts"
import type { Table } from "./Figures.ts"
import { root } from "./Child.ts"

export interface Conditions {
  readonly at: string
  readonly machine: string
  readonly runtime: string
  readonly postgres: string
  readonly nats: string
  readonly rounds: number
  /** The machine's load average after the claim: far above the number of cores, other work disturbed it. */
  readonly load: number
}

export interface Reported extends Finding {
  readonly title: string
  readonly conditions: Conditions
}

type Results = Record<string, Reported>

export const conditions = (
  versions: { readonly postgres: string; readonly nats: string },
  rounds: number,
): Conditions => {
  const [cpu] = cpus()
  return {
    at: new Date().toISOString().slice(0, 16) + "Z",
    machine: `${cpus().length} × ${cpu?.model.trim()}, ${
      Math.round(totalmem() / 2 ** 30)
    } GiB, ${platform()} ${release()}`,
    runtime: "deno" in process.versions ? `Deno ${process.versions["deno"]}` : `Node ${process.version}`,
    ...versions,
    rounds,
    load: Math.round(loadavg()[0]!),
  }
}

const aligned = ({ columns, rows }: Table): string => {
  const lines = [columns, ...rows].map((row) => row.map(String))
  const widths = columns.map((_, i) => Math.max(...lines.map((line) => line[i]!.length)))
  return lines.map((line) =>
    line.map((cell, i) => i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!)).join("  ")
  )
    .join("\n")
}

export const terminal = ({ notes, tables, title }: Reported): string =>
  [title, ...tables.flatMap((table) => ["", `  ${table.title}`, aligned(table).replace(/^/gm, "  ")]), ""]
    .concat(notes.map((note) => `  ${note}`)).join("\n")

const markdown = ({ columns, rows, title }: Table): string =>
  [
    `**${title}**`,
    "",
    ...[columns, columns.map((_, i) => i === 0 ? "---" : "---:"), ...rows].map((row) => `| ${row.join(" | ")} |`),
  ].join("\n")

const page = (results: Results): string =>
  [
    "# Measured",
    "",
    "The last real run of `deno task bench` (`bench/results/last.json` has every round). Absolute figures are this",
    "machine's; ratios were taken within a round.",
    ...Object.values(results).flatMap(({ conditions: c, notes, tables, title }) => [
      "",
      `## ${title}`,
      "",
      `${c.at}, rounds: ${c.rounds}, ${c.machine}; ${c.runtime}, PostgreSQL ${c.postgres}, nats-server ${c.nats}; load average ${c.load}.`,
      ...tables.flatMap((table) => ["", markdown(table)]),
      "",
      ...notes.map((note) => `- ${note}`),
    ]),
    "",
  ].join("\n")

/** Writes the findings beside those of earlier runs of other claims; a quick run leaves the committed files alone. */
export const save = (found: Results, quick: boolean): string => {
  const folder = join(root, "bench", "results", ...(quick ? ["tmp"] : []))
  mkdirSync(folder, { recursive: true })
  const file = join(folder, "last.json")
  const before: Results = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {}
  const all = { ...before, ...found }
  writeFileSync(file, `${JSON.stringify(all, (_, v) => typeof v === "number" ? Number(v.toPrecision(6)) : v, 1)}\n`)
  writeFileSync(join(folder, "README.md"), page(all))
  return file
}
