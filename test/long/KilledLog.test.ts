/**
 * The program is killed with SIGKILL while it integrates decisions into the transparency log and publishes checkpoints:
 * in the end every decision has exactly one entry, the entries have no gap, and the log that the kit reads continues
 * each one that was served before.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import { join } from "node:path"
import { type TreeHead, verifyCheckpoint } from "../../sdk/TransparencyLog.ts"
import { verifyLog } from "../../sdk/WholeLog.ts"
import type { LogFault } from "../../services/platform/Failpoints.ts"
import { demoIssuer } from "../../src/embedded/DemoIdentity.ts"
import { fixture, ids } from "../e2e/support/ProgramIdentity.ts"
import { until } from "../e2e/support/Until.ts"
import { reason } from "../support/Fixtures.ts"
import { home, start } from "../support/Processes.ts"

const points: ReadonlyArray<LogFault> = ["log.written", "log.integrated", "log.published"]

describe("the transparency log, killed", () => {
  it.live("has every decision once, without a gap, and never forks", () =>
    Effect.gen(function* () {
      const around = yield* fixture({}, { ROLES: "api,relay" })
      const sequencer = (more: Readonly<Record<string, string>>) =>
        Effect.flatMap(home, (folder) =>
          start({
            module: "test/long/support/FaultMain.ts",
            env: {
              ...around.env(),
              PORT: "0",
              ROLES: "lifecycle",
              BAILIWICK_HOME: folder,
              BAILIWICK_KEYS_FILE: join(around.home, "keys.json"),
              ...more,
            },
          }))
      const head = around.rows<{ size: string; published: string; waiting: string; checkpoint: string; key: string }>(
        `select size::text as size, published_size::text as published, checkpoint,
          (select count(*)::text from log_pending) as waiting, (select verifier_key from log_keys) as key
        from log_head`,
      )
      const bundle = (path: string) => {
        const [, index, width] = /^tile\/entries\/(\d{3})(?:\.p\/(\d+))?$/.exec(path)!
        const from = Number(index) * 256
        return Effect.map(
          around.rows<{ hex: string }>(
            `select encode(digest, 'hex') as hex from log_entries
            where index >= ${from} and index < ${from + Number(width ?? 256)} order by index`,
          ),
          (rows) => Buffer.concat(rows.flatMap(({ hex }) => [Buffer.of(0, 32), Buffer.from(hex, "hex")])),
        )
      }
      let before: TreeHead | null = null

      for (const [n, point] of points.entries()) {
        const subject = `log-${n}-pat`
        const person = { kind: "person", id: subject, version: 1, issuer: demoIssuer, subject, status: "active" }
        yield* around.apply({ ...person, email: `${subject}@example.com`, email_verified: true })
        const { json } = yield* (yield* around.as({ subject })).post(
          "/v1/me/access-requests",
          { institution_id: ids.fern, project_id: ids.fernPortal, reason },
          { headers: { "idempotency-key": randomUUID() } },
        )
        const path = `/v1/policies/reviews/${json.policy_review.review_id}/decline`
        yield* around.post("sam", path, { role: "sponsor", reason })

        yield* Effect.scoped(Effect.gen(function* () {
          const doomed = yield* sequencer({ FAULT: `${point}:1` })
          assert.isNull(yield* doomed.exited, `SIGKILL, nothing else: ${doomed.output()}`)
        }))
        yield* Effect.scoped(Effect.gen(function* () {
          yield* sequencer({ FAULT: "none:0" })
          yield* until("all is published", head, ([row]) =>
            row !== undefined && row.waiting === "0" && row.published === row.size)
        }))
        const [row] = yield* head
        const { checkpoint, key, size } = row!
        const policy = { origin: key.split("+")[0]!, logKeys: [key] }
        assert.strictEqual(verifyCheckpoint(checkpoint, policy).size, Number(size))
        before = yield* Effect.promise(() =>
          verifyLog(
            (path) =>
              path === "checkpoint" ? Promise.resolve(Buffer.from(checkpoint)) : Effect.runPromise(bundle(path)),
            policy,
            before,
          )
        )
        const [counts] = yield* around.rows<{ entries: string; records: string; last: string; missing: string }>(
          `select count(*)::text as entries, count(distinct record_id)::text as records, max(index)::text as last,
            (select count(*)::text from audit_records a where outcome = 'done'
              and (action like '%-request.%' or action like 'policy-review.%')
              and not exists (select from log_entries e where e.record_id = a.id)) as missing
          from log_entries`,
        )
        assert.deepStrictEqual(
          counts,
          { entries: size, records: size, last: String(Number(size) - 1), missing: "0" },
          point,
        )
        assert.isAtLeast(Number(size), 2 * (n + 1))
      }
    }).pipe(Effect.scoped), 900_000)
})
