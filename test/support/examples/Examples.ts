/**
 * Makes src/http/docs/RecordedExamples.json: `deno task examples` runs the tests that ask every operation over HTTP,
 * records what they asked, and takes the fullest example of each operation. An example that still fits its schema, and of lines
 * of JSON has all members, stays as it is, so that a run changes nothing that need not change; `deno task examples --all` takes all of them anew, and
 * `deno task examples FILE` runs that test alone.
 */
import { spawnSync } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { pathToFileURL } from "node:url"
import { Api } from "../../../schemas/api/Api.ts"
import { document } from "../../../src/http/docs/Document.ts"
import type { DocumentJson } from "../../../src/http/docs/DocumentJson.ts"
import { examples, type RecordedExample } from "../../../src/http/docs/RecordedExamples.ts"
import { type Described, describedIn, examplesOf, pathsOf } from "./ExampleFits.ts"
import { normalForm } from "./NormalForm.ts"
import type { Exchange } from "./RecordExchanges.ts"

export const examplesFile = new URL("../../../src/http/docs/RecordedExamples.json", import.meta.url)

const named = process.argv.slice(2).filter((argument) => !argument.startsWith("--"))

/** The tests whose exchanges are recorded: those that the command names, or those that ask every operation. */
const recorded = named.length > 0 ? named : [
  "test/src/http/docs/SeldomAsked",
  "test/src/http/handlers",
  "test/src/http/identity/Walk",
  "test/src/http/identity/Roles",
  "test/src/http/identity/Recognised",
  "test/src/http/console/EmbedLinks",
  "test/src/http/console/ConsoleBrand",
  "test/src/http/console/ConsoleOperator",
  "test/src/http/console/ConsoleWebhooks",
  "test/src/http/console/ConsoleUpkeep",
  "test/src/http/Server.test.ts",
  "test/src/http/auth/AccountAuth",
]

const operations = describedIn(document(Api))
const wrong = examplesOf(document(Api))

/** The text of the file. */
export const exampleText = (all: Readonly<Record<string, RecordedExample>>): string =>
  `${JSON.stringify(Object.fromEntries(Object.entries(all).sort(([a], [b]) => a < b ? -1 : 1)), null, 2)}\n`

/** What is wrong with the recorded examples, by operation. */
export const exampleFaults = (all: Readonly<Record<string, RecordedExample>>): ReadonlyArray<string> => [
  ...operations.flatMap((operation) => {
    const example = all[operation.id]
    if (example === undefined) return [`${operation.id}: no example`]
    const faults = wrong(operation, example)
    const stable = JSON.stringify(normalForm(example)) === JSON.stringify(example) ? [] : ["is not in normal form"]
    return [...faults, ...stable].map((fault) => `${operation.id}: ${fault}`)
  }),
  ...Object.keys(all).filter((id) => !operations.some((one) => one.id === id)).map((id) => `${id}: no operation`),
]

const shownOfRequest = ["content-type", "idempotency-key", "if-match", "accept"]
const shownOfAnswer = ["content-type", "etag", "location", "link"]

const shown = (headers: Readonly<Record<string, string>>, names: ReadonlyArray<string>) =>
  Object.fromEntries(names.flatMap((name) => headers[name] === undefined ? [] : [[name, headers[name]]]))

const bodyOf = (text: string, type = ""): { readonly body?: DocumentJson } =>
  text === "" || text === "null" ? {} : { body: /\bjson/.test(type) ? JSON.parse(text) as DocumentJson : text }

const exampleOf = (exchange: Exchange): RecordedExample => {
  const secrets = {
    ...("authorization" in exchange.headers ? { authorization: "Bearer …" } : {}),
    ...("x-portal-binding" in exchange.headers ? { "x-portal-binding": "…" } : {}),
  }
  const accepts = exchange.headers["accept"]?.startsWith("text/event-stream")
    ? shownOfRequest
    : shownOfRequest.slice(0, 3)
  return normalForm({
    request: {
      method: exchange.method,
      path: exchange.path,
      headers: { ...secrets, ...shown(exchange.headers, accepts) },
      ...bodyOf(exchange.body, exchange.headers["content-type"]),
    },
    answer: {
      status: exchange.status,
      headers: shown(exchange.answerHeaders, shownOfAnswer),
      ...bodyOf(exchange.answer, exchange.answerHeaders["content-type"]),
    },
  })
}

/** How many members of an answer say something. */
const told = (value: unknown): number =>
  typeof value === "object" && value !== null
    ? Object.values(value).reduce((sum: number, item) => sum + told(item), 0)
    : value === null || value === "" || value === undefined
    ? 0
    : 1

/** An example is read on a page: it is short, and of words that a reader expects. */
const readable = (text: string) => text.length <= 4_000 && !/[^ -~…\n]|\\u|[^\s"]{300}/.test(text)

/** Orders examples of one operation: the fullest first, of these the shortest, and then by the text. */
const better = (a: RecordedExample, b: RecordedExample): number => {
  const [left, right] = [JSON.stringify(a), JSON.stringify(b)]
  return Number(readable(right)) - Number(readable(left)) || told(b) - told(a) || left.length - right.length ||
    (left < right ? -1 : 1)
}

const exchangesIn = (folder: string): ReadonlyArray<Exchange> =>
  readdirSync(folder).flatMap((name) =>
    readFileSync(join(folder, name), "utf8").split("\n").filter((line) => line !== "").map((line) =>
      JSON.parse(line) as Exchange
    )
  )

const operationOf = ({ method, path }: Exchange): Described | undefined => {
  const [place] = path.split("?")
  const places = operations.filter((one) => one.method === method && pathsOf(one).test(place!))
  // `/v1/me` before `/v1/{…}`: the one with the fewest parameters.
  return places.sort((a, b) => a.template.split("{").length - b.template.split("{").length)[0]
}

/** The best example of each operation among the exchanges of a folder. */
export const examplesIn = (folder: string): Readonly<Record<string, RecordedExample>> => {
  const found = new Map<string, Array<RecordedExample>>()
  for (const exchange of exchangesIn(folder)) {
    const operation = operationOf(exchange)
    if (operation === undefined) continue
    const example = exampleOf(exchange)
    if (wrong(operation, example).length > 0) continue
    found.set(operation.id, [...found.get(operation.id) ?? [], example])
  }
  return Object.fromEntries([...found].map(([id, all]) => [id, all.sort(better)[0]!]))
}

/** The members of each kind of line of an answer of JSON lines: no schema of the document describes them. */
const lineMembers = ({ answer }: RecordedExample): ReadonlyArray<string> =>
  answer.headers["content-type"] === "application/x-ndjson" && typeof answer.body === "string"
    ? answer.body.split("\n").filter((line) => line !== "").flatMap((text) => {
      const line = JSON.parse(text) as Readonly<Record<string, unknown>>
      return Object.keys(line).map((name) => `${line["line"]}.${name}`)
    })
    : []

/** Whether the lines of a fresh example have members that the known one lacks. */
const isStale = (known: RecordedExample, fresh: RecordedExample | undefined): boolean => {
  const members = new Set(lineMembers(known))
  return fresh !== undefined && lineMembers(fresh).some((name) => !members.has(name))
}

const made = (): Readonly<Record<string, RecordedExample>> => {
  const folder = process.env["EXCHANGES"] ?? mkdtempSync(join(tmpdir(), "bailiwick-exchanges-"))
  try {
    if (process.env["EXCHANGES"] === undefined) {
      const args = ["run", "-A", "npm:vitest@5.1.1", "run", "--config", "vitest.examples.config.ts", ...recorded]
      const { status } = spawnSync(process.execPath, args, {
        stdio: "inherit",
        env: { ...process.env, EXCHANGES: folder },
      })
      if (status !== 0) {
        process.stderr.write("a recording test failed: its exchanges may be missing\n")
        process.exitCode = 1
      }
    }
    const fresh = examplesIn(folder)
    const kept = process.argv.includes("--all") ? [] : operations.flatMap((one) => {
      const known = examples[one.id]
      return known !== undefined && wrong(one, known).length === 0 && !isStale(known, fresh[one.id])
        ? [[one.id, known] as const]
        : []
    })
    return { ...fresh, ...Object.fromEntries(kept) }
  } finally {
    if (process.env["EXCHANGES"] === undefined) rmSync(folder, { recursive: true, force: true })
  }
}

if (import.meta.url === pathToFileURL(process.argv[1]!).href) {
  const all = made()
  writeFileSync(examplesFile, exampleText(all))
  for (const fault of exampleFaults(all)) {
    process.stderr.write(`${fault}\n`)
    process.exitCode = 1
  }
}
