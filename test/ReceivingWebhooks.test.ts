/**
 * The page for receivers, docs/webhooks.md: every snippet of it runs, and every example is what the program makes. A
 * language that the machine lacks is skipped, and said.
 */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { catalogue } from "../schemas/mail/EventCatalogue.ts"
import { maxBytes, maxDepth } from "../services/platform/messaging/BoundedJson.ts"
import { read } from "../services/webhooks/EventIntake.ts"
import { maxAttempts, specified } from "../services/webhooks/RetrySchedule.ts"
import { generateSecret, headersFor } from "../services/webhooks/Signer.ts"

const page = readFileSync(new URL("../docs/webhooks.md", import.meta.url), "utf8")

const blocks = [...page.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, language, text]) => ({
  language,
  text: text!,
}))
const snippets = (language: string) => blocks.filter((block) => block.language === language).map(({ text }) => text)

/** A program for each language that calls the page's `verify` with every case of its standard input. */
const drivers: Readonly<Record<string, (snippet: string) => Readonly<Record<string, string>>>> = {
  ts: (snippet) => ({
    "verify.ts": `${snippet}
import { readFileSync } from "node:fs"
const answers: Array<boolean> = []
for (const { body, headers, secret } of JSON.parse(readFileSync(0, "utf8"))) {
  answers.push(await verify(new Headers(headers), bytesOf(body), secret))
}
console.log(JSON.stringify(answers))
`,
  }),
  python: (snippet) => ({
    "verify.py": `${snippet}
import json, sys
print(json.dumps([verify(c["headers"], base64.b64decode(c["body"]), c["secret"]) for c in json.load(sys.stdin)]))
`,
  }),
  ruby: (snippet) => ({
    "verify.rb": `${snippet}
require "json"
puts JSON.generate(JSON.parse($stdin.read).map { |c| verify(c["headers"], c["body"].unpack1("m"), c["secret"]) })
`,
  }),
  php: (snippet) => ({
    "verify.php": `${snippet}
$cases = json_decode(stream_get_contents(STDIN), true);
echo json_encode(array_map(fn($c) => verify($c['headers'], base64_decode($c['body']), $c['secret']), $cases));
`,
  }),
  go: (snippet) => ({
    "verify.go": snippet,
    "main.go": `package main

import (
	"encoding/json"
	"net/http"
	"os"
)

type request struct {
	Headers map[string]string
	Body    []byte
	Secret  string
}

func main() {
	var requests []request
	if err := json.NewDecoder(os.Stdin).Decode(&requests); err != nil {
		panic(err)
	}
	answers := []bool{}
	for _, one := range requests {
		headers := http.Header{}
		for name, value := range one.Headers {
			headers.Set(name, value)
		}
		answers = append(answers, verify(headers, one.Body, one.Secret))
	}
	json.NewEncoder(os.Stdout).Encode(answers)
}
`,
  }),
}

const commands: Readonly<Record<string, readonly [command: string, version: string, ...args: Array<string>]>> = {
  ts: [process.execPath, "--version", ...("Deno" in globalThis ? ["run", "-A", "--no-config", "--no-lock"] : [])],
  python: ["python3", "--version"],
  ruby: ["ruby", "--version"],
  php: ["php", "--version"],
  go: ["go", "version", "run"],
}

const secret = generateSecret()
const other = generateSecret()
const body = Buffer.from(JSON.stringify({ ...catalogue(new Map())[0]!.example, recipient: "zoë@example.com" }))

/** The headers of a request that was signed `ago` seconds ago, with names in lower case. */
const signed = (secrets: readonly [string, string?], ago = 0, of: Buffer = body) => {
  const timestampSeconds = Math.floor(Date.now() / 1_000) - ago
  const headers = headersFor({
    deliveryId: "a-delivery",
    eventType: "email.sent",
    attempt: 1,
    timestampSeconds,
    body: of,
    secrets,
  })
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}

interface Case {
  readonly name: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  readonly valid: boolean
}

const cases: ReadonlyArray<Case> = [
  { name: "as it is sent", headers: signed([secret]), body, valid: true },
  { name: "an empty body", headers: signed([secret], 0, Buffer.alloc(0)), body: Buffer.alloc(0), valid: true },
  { name: "in a rotation, by the new secret", headers: signed([secret, other]), body, valid: true },
  { name: "in a rotation, by the old secret", headers: signed([other, secret]), body, valid: true },
  { name: "four minutes old", headers: signed([secret], 240), body, valid: true },
  { name: "another body", headers: signed([secret]), body: Buffer.concat([body, Buffer.from(" ")]), valid: false },
  { name: "another secret", headers: signed([other]), body, valid: false },
  { name: "six minutes old", headers: signed([secret], 360), body, valid: false },
  { name: "six minutes ahead", headers: signed([secret], -360), body, valid: false },
  { name: "another id", headers: { ...signed([secret]), "webhook-id": "another" }, body, valid: false },
  { name: "a time that is none", headers: { ...signed([secret]), "webhook-timestamp": "now" }, body, valid: false },
  { name: "an empty signature", headers: { ...signed([secret]), "webhook-signature": "" }, body, valid: false },
  {
    name: "a broken signature",
    headers: { ...signed([secret]), "webhook-signature": "v1,@ v1 ," },
    body,
    valid: false,
  },
  { name: "no headers", headers: {}, body, valid: false },
]

const within = <A>(use: (folder: string) => A): A => {
  const folder = mkdtempSync(join(tmpdir(), "receiving-"))
  try {
    return use(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const run = (command: string, args: ReadonlyArray<string>, cwd: string, input = "", env: NodeJS.ProcessEnv = {}) => {
  const { error, status, stderr, stdout } = spawnSync(command, args, {
    cwd,
    input,
    encoding: "utf8",
    timeout: 240_000,
    env: { ...process.env, GO111MODULE: "off", ...env },
  })
  return { status, stdout, stderr: error === undefined ? stderr : String(error) }
}

const installed = (language: string): boolean => {
  const [command, version] = commands[language]!
  const found = run(command, [version], tmpdir()).status === 0
  if (!found) console.warn(`SKIPPED: the ${language} of docs/webhooks.md is not tried, as there is no ${command} here`)
  return found
}

describe("verification as the page shows it", () => {
  for (const [language, driver] of Object.entries(drivers)) {
    it.skipIf(!installed(language))(`in ${language} accepts what the program signs, and nothing else`, () => {
      const [snippet, ...more] = snippets(language)
      assert.isEmpty(more)
      const files = driver(snippet!)
      const input = JSON.stringify(
        cases.map(({ body, headers }) => ({ headers, secret, body: body.toString("base64") })),
      )
      within((folder) => {
        for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
        const [command, , ...args] = commands[language]!
        const { status, stderr, stdout } = run(command, [...args, ...Object.keys(files)], folder, input)
        assert.strictEqual(status, 0, stderr)
        const answers: ReadonlyArray<boolean> = JSON.parse(stdout)
        assert.deepStrictEqual(
          cases.map(({ name }, index) => [name, answers[index]]),
          cases.map(({ name, valid }) => [name, valid]),
        )
      })
    })
  }

  const [standard, older] = snippets("sh")

  it("in a shell accepts what the program signs, and nothing else", () =>
    within((folder) => {
      for (const { body, headers, name, valid } of cases) {
        writeFileSync(join(folder, "body"), body)
        const { status } = run("sh", ["-eu", "-c", standard!], folder, "", {
          secret,
          id: headers["webhook-id"] ?? "",
          timestamp: headers["webhook-timestamp"] ?? "0",
          signatures: headers["webhook-signature"] ?? "",
        })
        assert.strictEqual(status === 0, valid, name)
      }
    }))

  it("in a shell gives the older signature", () =>
    within((folder) => {
      writeFileSync(join(folder, "body"), body)
      const { stdout } = run("sh", ["-eu", "-c", older!], folder, "", { secret })
      assert.strictEqual(stdout.trim(), signed([secret])["x-webhook-signature"])
    }))

  it("has no snippet that is not tried", () => {
    // The import's commands and file: test/e2e/AccountCommands.test.ts.
    const imported = ["sh", "json"]
    const tried = ["http", "json", "sh", "sh", ...imported, ...Object.keys(drivers)]
    assert.sameMembers(blocks.map(({ language }) => language!), tried)
  })
})

describe("what the page says of requests", () => {
  it("shows a request as the program signs it", () => {
    const [head, text] = snippets("http")[0]!.trimEnd().split("\n\n")
    const headers = Object.fromEntries(head!.split("\n").map((line) => line.split(": ", 2)))
    assert.deepStrictEqual(
      headers,
      headersFor({
        deliveryId: headers["webhook-id"],
        eventType: JSON.parse(text!).event,
        attempt: 1,
        timestampSeconds: Number(headers["webhook-timestamp"]),
        body: text!,
        secrets: [page.match(/`(whsec_[A-Za-z0-9+/=]+)`/)![1]!],
      }),
    )
    for (const name of Object.keys(headers).filter((name) => name !== "content-type")) {
      assert.include(page, `\`${name}\``)
    }
  })

  it("shows the eight bodies as intake makes them, and the table of the catalogue", () => {
    const bodies = snippets("json")[0]!.trimEnd().split("\n")
    const types = catalogue(new Map())
    assert.deepStrictEqual(bodies.map((text) => JSON.parse(text).event), types.map(({ event_type }) => event_type))
    for (const [index, { event_type, meaning, metadata_fields }] of types.entries()) {
      const message = { id: "e-1", account_id: "0199c0de-0000-7000-8000-000000000001", ...JSON.parse(bodies[index]!) }
      const subject = `intake.v1.mail-events.${event_type.slice("email.".length)}`
      const taken = read({ subject, data: Buffer.from(JSON.stringify(message)) })
      assert.strictEqual(Result.getOrThrow(taken).body, bodies[index])
      const fields = metadata_fields.map((name) => `\`${name}\``).join(", ")
      assert.include(page, `| \`${event_type}\` | ${meaning} | ${fields} |`)
    }
  })

  it("has the retry table and the bounds of the program", () => {
    const minutes = { "a minute": 1, minutes: 1, hours: 60 }
    const rows = [...page.matchAll(/^\| (\d) \| (?:(\d+) )?(a minute|minutes|hours) \|$/gm)]
    assert.deepStrictEqual(rows.map(([, attempt]) => Number(attempt)), [2, 3, 4, 5, 6, 7, 8])
    assert.deepStrictEqual(
      rows.map(([, , count = "1", unit]) => Number(count) * minutes[unit as keyof typeof minutes] * 60_000),
      specified.delays.slice(0, maxAttempts - 1),
    )
    assert.strictEqual(specified.jitter, 0.1)
    assert.include(page, `at most ${maxBytes / 1_024} KiB, and nests at most ${maxDepth} levels`)
  })
})
