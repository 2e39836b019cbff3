/**
 * A provider that hangs, from outside: its jobs as the API shows them before and after an operator acts, no repeated
 * call of unknown outcome, and no secret of the provider's in any table or log.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import type { ServerResponse } from "node:http"
import { reason } from "../support/Fixtures.ts"
import { initialAccessToken, oidcProvider } from "../support/OidcProvider.ts"
import { fixture, ids } from "./support/ProgramIdentity.ts"
import { until } from "./support/Until.ts"

describe("an identity provider that hangs", () => {
  it.live(
    "leaves jobs ambiguous for an operator: unanswered calls are not repeated, and no secret is kept",
    () =>
      Effect.gen(function* () {
        const { interference, made, registrationEndpoint } = yield* oidcProvider
        const at = yield* fixture({}, {
          IDENTITY_PROVIDER: JSON.stringify({
            registration_endpoint: registrationEndpoint,
            initial_access_token: initialAccessToken,
          }),
          WEBHOOKS_TIMEOUT: "3 seconds",
          LOG_LEVEL: "trace",
        })
        const summary = (who: "oz" | "sam" | "pat") =>
          Effect.flatMap(at.as(who), (api) => Effect.map(api.get("/v1/operations"), ({ json }) => json))
        const told = (status: string) => until(status, summary("oz"), (seen) => seen.status === status)
        const job = Effect.flatMap(at.as("oz"), (api) => Effect.map(api.get("/v1/jobs"), ({ json }) => json.items[0]))
        const diagnostics = Effect.flatMap(at.as("oz"), (api) =>
          Effect.map(api.get("/v1/operations/diagnostics"), ({ json }) => json))
        const keyed = (key: string = randomUUID()) => ({ headers: { "idempotency-key": key } })
        const act = (action: string, body: object, key?: string) =>
          Effect.gen(function* () {
            const { job_id } = yield* job
            return yield* (yield* at.as("oz")).post(`/v1/jobs/${job_id}/${action}`, { reason, ...body }, keyed(key))
          })
        const codeOf = ({ json, status }: { readonly json: { code?: string }; readonly status: number }) =>
          `${status} ${json.code}`
        const register = Effect.fnUntraced(function* (name: string, more: object) {
          const registered = yield* at.post("sam", `/v1/institutions/${ids.fern}/websites`, {
            name,
            website: `https://${name}.fern.example`,
            owner_person_id: ids.pat,
            environment: "staging",
            requested_scopes: ["openid"],
            reason,
            ...more,
          })
          const review = registered.policy_review.review_id
          yield* at.post("ada", `/v1/policies/reviews/${review}/approve`, { role: "administrator", reason })
          return registered
        })

        assert.deepStrictEqual(yield* summary("oz"), {
          pending: 0,
          failed: 0,
          failure_diagnostics_available: false,
          status: "effective",
        })
        Object.assign(interference, { cut: "after", instead: () => {} })
        const site = yield* register("shop", { redirect_uris: ["https://shop.fern.example/callback"] })
        assert.deepInclude(yield* told("failed"), { pending: 0, failed: 1, failure_diagnostics_available: true })
        assert.isTrue((yield* summary("pat")).failure_diagnostics_available)
        assert.deepInclude(yield* summary("sam"), { failed: 1, failure_diagnostics_available: false, status: "failed" })
        assert.deepInclude(yield* job, {
          job_id: site.job_id,
          kind: "client.create",
          project_id: site.project_id,
          state: "ambiguous",
          attempts: 1,
          max_attempts: 8,
          next_attempt_at: null,
          last_error_code: "timeout",
        })
        const [unclear] = (yield* diagnostics).ambiguous
        assert.deepInclude(unclear, {
          provider_reference: `bailiwick:${site.project_id}`,
          allowed_actions: ["reconcile"],
        })
        assert.deepInclude(unclear.target_state, { client_name: "shop", software_id: `bailiwick:${site.project_id}` })
        assert.strictEqual(codeOf(yield* act("retry", {})), "409 invalid_state")
        const [own] = made
        const client = {
          client_id: own!.client_id,
          registration_client_uri: own!.registration_client_uri,
          registration_access_token: own!.registration_access_token,
        }
        assert.strictEqual(codeOf(yield* act("repair", client)), "409 invalid_state")

        // RFC 7591 has no search: the look decides nothing, but allows the operator to decide.
        const look = randomUUID()
        const looked = yield* act("reconcile", {}, look)
        assert.deepInclude(looked.json, { state: "ambiguous", last_error_code: "unfindable" })
        const again = yield* act("reconcile", {}, look)
        assert.deepStrictEqual([again.status, again.text], [200, looked.text])
        assert.strictEqual(again.headers.get("idempotency-replayed"), "true")
        assert.deepInclude(yield* summary("oz"), { failed: 1, status: "failed" })
        assert.deepStrictEqual((yield* diagnostics).ambiguous[0].allowed_actions, [
          ...["reconcile", "reviewed_retry", "reviewed_repair"],
        ])

        // A refused request has done nothing, so its key can be used again.
        const mend = randomUUID()
        const silent = yield* act("repair", client, mend)
        assert.deepInclude(silent.json, { status: 504, code: "outcome_unknown", job_id: site.job_id })
        interference.cut = null
        const mended = yield* act("repair", client, mend)
        assert.deepInclude(mended.json, { state: "effective", last_error_code: null })
        assert.strictEqual((yield* act("repair", client, mend)).text, mended.text)
        assert.deepInclude(yield* summary("oz"), { pending: 0, failed: 0, status: "effective" })
        assert.strictEqual(
          interference.seen.filter((one) =>
            one.startsWith("POST")
          ).length,
          1,
        )

        // A busy provider has not answered: the call is repeated, and in the end done once.
        Object.assign(interference, {
          cut: "before",
          instead: (response: ServerResponse) => response.writeHead(429).end(),
        })
        const other = yield* register("desk", { connector_kind: "service_connector" })
        assert.deepInclude(yield* told("pending"), { pending: 1, failed: 0, failure_diagnostics_available: false })
        yield* until("a refusal", job, ({ last_error_code }) => last_error_code === "status_429")
        interference.cut = null
        yield* told("effective")
        assert.deepInclude(yield* job, { job_id: other.job_id, state: "effective", last_error_code: null })
        assert.lengthOf(made, 2)

        // The client ended, but the answer broke off: the provider's answer about an ended client proves nothing.
        Object.assign(interference, {
          cut: "after",
          instead: (response: ServerResponse) => {
            response.writeHead(200, { "content-length": "9" }).write("{")
            setTimeout(() => response.socket?.destroy(), 50)
          },
        })
        const withdrawn = yield* at.post("ada", `/v1/institutions/${ids.fern}/websites/${site.project_id}/withdraw`, {
          expected_version: site.version,
          reason,
        })
        yield* told("failed")
        interference.cut = null
        assert.deepInclude(yield* job, { job_id: withdrawn.job_id, kind: "client.disable", last_error_code: "body" })
        assert.strictEqual((yield* act("reconcile", {})).json.last_error_code, "unfindable")
        assert.strictEqual((yield* act("repair", { client_id: own!.client_id })).json.state, "effective")
        assert.deepInclude(yield* summary("oz"), { failed: 0, status: "effective" })
        assert.deepStrictEqual(made.map(({ live }) => live), [false, true])

        const audit = yield* at.type("audit", "--request-id", silent.headers.get("x-request-id")!)
        const [record, ...others] = audit.output.split("\n").filter((line) => line.startsWith("{"))
        assert.lengthOf(others, 0)
        assert.deepInclude(JSON.parse(record!), { id: silent.json.audit_id, status: 504, code: "outcome_unknown" })

        const secrets = made.flatMap((one) => [one.registration_access_token, one.client_secret ?? initialAccessToken])
        assert.lengthOf(new Set(secrets), 4)
        const tables = yield* at.rows<{ name: string }>(`
          select c.relname as name from pg_class c where c.relnamespace = 'public'::regnamespace
            and c.relkind in ('r', 'p') and not c.relispartition and has_table_privilege(c.oid, 'select')`)
        const places = yield* Effect.forEach(tables, ({ name }) =>
          Effect.map(
            at.rows<{ text: string | null }>(`select string_agg(t::text, ' ') as text from "${name}" t`),
            ([row]) => [name, row!.text ?? ""] as const,
          ))
        assert.include(
          places.find(([name]) => name === "provider_clients")![1],
          own!.client_id,
        )
        const all = [...places, ["the log", at.instance.output()], [
          "diagnostics",
          JSON.stringify(yield* diagnostics),
        ]] as const
        for (const [place, text] of all) {
          for (const one of secrets) {
            for (const shape of [one, Buffer.from(one).toString("hex"), Buffer.from(one).toString("base64")]) {
              assert.notInclude(text, shape, place)
            }
          }
        }
      }).pipe(Effect.scoped),
    240_000,
  )
})
