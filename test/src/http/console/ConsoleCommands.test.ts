/** The commands at the feet of an operator's pages: each page has one, which runs and prints what the page shows. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { randomUUID } from "node:crypto"
import { readFileSync } from "node:fs"
import type { Page } from "puppeteer-core"
import { Database } from "../../../../services/platform/database/Database.ts"
import * as Processes from "../../../support/Processes.ts"
import { deadLetter, webhook } from "../../../support/TestDeadLetters.ts"
import { heldPerson } from "../../../support/TestHolds.ts"
import { outgoingMail } from "../../../support/TestMails.ts"
import { intakeReject } from "../../../support/TestRejects.ts"
import { servers, slow, type } from "../../cli/Terminal.ts"
import { Chromium, everyLook, heading, inConsole, quiet, text } from "./ConsoleBrowser.ts"
import { staged } from "./ConsoleStage.ts"

const pages = [
  ...readFileSync(new URL("../../../../console/Screens.tsx", import.meta.url), "utf8")
    .matchAll(/path: "(\/console\/operations\/[^"]*)"/g),
].map(([, path]) => path!)

const spelling = "npx -y deno@2.9.6 task cli "

/** The words of the commands on a page, behind `cli`. */
const commandsOn = (page: Page) =>
  Effect.promise(() => page.$$eval("p.note code", (all) => all.map((one) => one.textContent ?? ""))).pipe(
    Effect.map((all) =>
      all.filter((one) => one.startsWith(spelling)).map((one) => one.slice(spelling.length).split(" "))
    ),
  )

/** One of each that an operator's pages list; gives what page and command both have to show, by the page. */
const seeded = Effect.gen(function* () {
  const { sql } = yield* Database
  const [hook, job] = [randomUUID(), randomUUID()]
  yield* webhook(hook, false)
  const letter = yield* deadLetter(hook)
  yield* outgoingMail()
  yield* intakeReject({ payload: "{" })
  const held = yield* heldPerson()
  const [{ id: project }] = (yield* sql<{ id: string }>`
    update projects set rollout = 'hold' where id = (select min(id) from projects where state <> 'withdrawn')
    returning id`) as [{ id: string }]
  yield* sql`insert into provider_jobs (id, kind, project_id, state, reference, created_at, updated_at, not_before,
      last_error)
    values (${job}::uuid, 'client.create', ${project}, 'failed', 'r', now(), now(), now(), 'invalid_client_metadata')`
  return {
    findings: ["1 failed, 0 of unknown outcome"],
    queues: [],
    "dead-letters": [letter],
    mails: ["a***@fern.example"],
    rejects: ["malformed"],
    bus: ["LIFECYCLE", "DEAD_LETTERS"],
    consumers: [],
    jobs: ["invalid_client_metadata", project],
    installation: [],
    rollouts: [project],
    "held-people": [held],
    "signing-keys": [],
    audit: ["console-session.opened"],
  } as Readonly<Record<string, ReadonlyArray<string>>>
})

/** The key ring of the program and of the commands, which run with another home. */
const ring = JSON.stringify({ active: "k1", keys: { k1: Buffer.alloc(32, 7).toString("base64") } })

layer(Layer.merge(staged({ BAILIWICK_KEYS: ring }), Chromium.layer), {
  excludeTestServices: true,
  timeout: "8 minutes",
})(
  "an operator's pages",
  (it) => {
    it.effect("have each a command that prints the same in a shell", () =>
      Effect.gen(function* () {
        const shows = yield* seeded
        const at = yield* inConsole("Oz")
        yield* heading(at.page, "Findings")
        const calm = quiet(at.page)
        const env = { ...(yield* servers), BAILIWICK_KEYS: ring }
        const home = yield* Processes.home
        assert.sameMembers(pages.map((path) => path.split("/").at(-1)!), Object.keys(shows))
        for (const path of pages) {
          yield* at.open(path)
          yield* Effect.promise(calm)
          const shown = shows[path.split("/").at(-1)!]!
          for (const words of shown) yield* text(at.page, words)
          const commands = yield* commandsOn(at.page)
          // This one follows what happens, and never ends.
          const ending = commands.filter(([name]) => name !== "tail")
          assert.lengthOf(ending, 1, path)
          const { code, stderr, stdout } = yield* type(home, env, ending[0]!)
          // The doctor of another home has findings of its own.
          if (ending[0]![0] !== "doctor") assert.strictEqual(code, 0, `${path}: ${stderr}`)
          assert.notMatch(stderr, /Unrecognized|Unknown|USAGE/i, path)
          for (const words of shown) assert.include(stdout, words, path)
        }
        yield* at.open("/console/operations/jobs", "Jobs")
        yield* text(at.page, "Name the client…")
        yield* text(at.page, "Fern Portal")
        const projects = yield* Effect.promise(() =>
          at.page.$$eval('td[data-label="Project"]', (all) => all.map((one) => (one as HTMLElement).innerText))
        )
        const named = projects.map((one) => one.split(/\s*\n\s*/)).filter(([, id]) => id === shows["jobs"]![1])
        assert.isAbove(named.length, 0)
        for (const [name] of named) assert.strictEqual(name, "Fern Portal")
        yield* everyLook(at, "jobs")
      }), slow * 4)
  },
)
