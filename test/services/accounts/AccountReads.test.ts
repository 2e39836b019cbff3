import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { randomUUID } from "node:crypto"
import { DomainId, WorkspaceId } from "../../../schemas/BrandedIds.ts"
import { AccountReads } from "../../../services/accounts/AccountReads.ts"
import { ApiKeys } from "../../../services/accounts/ApiKeys.ts"
import { Cookies } from "../../../services/authentication/Cookies.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { rowsRead } from "../../support/RowsRead.ts"
import {
  accept,
  accountLine,
  codeOf,
  domain,
  domainLine,
  feed,
  offer,
  person,
  seat,
  service,
} from "../transfers/TransferFixture.ts"

const fixture = Layer.mergeAll(AccountReads.layer({ webhooksPerAccount: 100 }), ApiKeys.layer).pipe(
  Layer.provideMerge(service()),
  Layer.provide(Cookies.layer([])),
)

const first = { limit: 100, afterId: null }

/** Ids of all pages, each of `limit` items, and how many pages there were. */
const walk = Effect.fnUntraced(function* <E>(
  read: (page: { readonly limit: number; readonly afterId: string | null }) => Effect.Effect<
    { readonly items: ReadonlyArray<{ readonly id: string }>; readonly next_after_id: string | null },
    E
  >,
  limit: number,
) {
  const sizes: Array<number> = []
  const ids: Array<string> = []
  let afterId: string | null = null
  do {
    const { items, next_after_id }: Effect.Success<ReturnType<typeof read>> = yield* read({ limit, afterId })
    sizes.push(items.length)
    ids.push(...items.map(({ id }) => id))
    afterId = next_after_id
  } while (afterId !== null)
  return { ids, sizes }
})

const workspace = Effect.fnUntraced(function* (created_at: string) {
  const id = WorkspaceId.make(randomUUID())
  yield* feed({ kind: "workspace", id, name: `W of ${created_at}`, created_at })
  return id
})

layer(fixture, { excludeTestServices: true, timeout: "2 minutes" })("AccountReads", (it) => {
  it.effect("an account shows its plan and what it uses of each limit; a limit of its own replaces the plan's", () =>
    Effect.gen(function* () {
      const { account } = yield* AccountReads
      const alice = yield* person({ plan: "starter" })
      yield* domain(alice)
      const principal = { accountId: alice.id, plan: "starter", platformAdmin: false } as const
      yield* (yield* ApiKeys).create(
        { ...principal, via: "cookie", keyId: null, authTime: null },
        { name: "CI", permissions: ["send"] },
      )
      const { sql } = yield* Database
      yield* sql`
        insert into webhooks (id, account_id, url, events, is_active, version, secret_kid, secret, created_at, updated_at,
          deleted_at)
        select gen_random_uuid(), ${alice.id}::uuid, 'https://x.example', '{}', n = 1, 1, 'k', '', now(), now(),
          case when n = 3 then now() end from generate_series(1, 3) n`
      const seen = yield* account(alice.id)
      assert.deepStrictEqual(seen, {
        id: alice.id,
        email: alice.email,
        name: `Name of ${alice.id.slice(0, 4)}`,
        plan: "starter",
        platform_admin: false,
        api_keys: { used: 1, limit: 5 },
        webhooks: { used: 2, limit: 100 },
        domains: { used: 1, limit: 5 },
      })
      yield* feed(accountLine(alice.id, { plan: "business" }))
      assert.deepStrictEqual((yield* account(alice.id)).domains, { used: 1, limit: -1 })
      yield* feed(accountLine(alice.id, { plan: "business", domain_limit: 7, platform_admin: true }))
      const changed = yield* account(alice.id)
      assert.deepStrictEqual([changed.domains.limit, changed.platform_admin], [7, true])
      yield* feed(accountLine(alice.id, { status: "disabled" }))
      assert.strictEqual(yield* codeOf(account(alice.id)), "invalid_credentials")
    }))

  it.effect("workspaces are listed oldest first, once each, with the role that may do more, page by page", () =>
    Effect.gen(function* () {
      const { workspaces } = yield* AccountReads
      const [alice, bob] = [yield* person(), yield* person()]
      const later = yield* workspace("2021-05-05T00:00:00.000Z")
      const earlier = yield* workspace("2019-05-05T00:00:00.000Z")
      yield* seat(later, alice.id, "member")
      yield* seat(later, alice.id, "admin")
      yield* seat(earlier, alice.id, "member")
      const gone = yield* workspace("2018-01-01T00:00:00.000Z")
      yield* seat(gone, alice.id, "owner")
      yield* feed({ kind: "workspace", id: gone, removed: true })
      const { items, next_after_id } = yield* workspaces(alice.id, first)
      assert.deepStrictEqual(items.map(({ created_at, id, role }) => [id, role, created_at]), [
        [earlier, "member", "2019-05-05T00:00:00.000Z"],
        [alice.workspaceId, "owner", "2020-01-01T00:00:00.000Z"],
        [later, "admin", "2021-05-05T00:00:00.000Z"],
      ])
      assert.isNull(next_after_id)
      const all = items.map(({ id }) => id)
      for (const [limit, sizes] of [[1, [1, 1, 1]], [2, [2, 1]], [3, [3]]] as const) {
        assert.deepStrictEqual(yield* walk((page) => workspaces(alice.id, page), limit), {
          ids: all,
          sizes: [...sizes],
        })
      }
      assert.deepStrictEqual((yield* workspaces(bob.id, first)).items.map(({ id }) => id), [bob.workspaceId])
      assert.deepStrictEqual((yield* workspaces(bob.id, { limit: 9, afterId: randomUUID() })).items, [])
    }))

  it.effect("domains are the account's and its workspaces', with the caller's role and the live transfer", () =>
    Effect.gen(function* () {
      const { domain: read, domains } = yield* AccountReads
      const [alice, bob, eve] = [yield* person({ plan: "pro" }), yield* person({ plan: "pro" }), yield* person()]
      yield* seat(alice.workspaceId, bob.id, "member")
      const own = yield* domain(bob, { verified_at: null })
      const offered = yield* domain(alice)
      const elsewhere = yield* workspace("2022-01-01T00:00:00.000Z")
      const apart = DomainId.make(randomUUID())
      yield* feed(domainLine(apart, { ...alice, workspaceId: elsewhere }))
      const transfer = yield* offer(alice.id, offered, eve.email)

      const seen = (yield* domains(bob.id, first)).items
      assert.deepStrictEqual(seen.map(({ id }) => id), [own, offered].sort())
      assert.deepStrictEqual(seen.find(({ id }) => id === offered), {
        id: offered,
        name: `d-${offered.slice(0, 8)}.example`,
        account_id: alice.id,
        workspace_id: alice.workspaceId,
        workspace_role: "member",
        account_email: null,
        may_transfer: false,
        verified_at: "2025-01-01T00:00:00.000Z",
        dkim_selector: "old",
        transfer: { id: transfer.id, status: "pending" },
      })
      assert.deepInclude(seen.find(({ id }) => id === own), {
        account_id: bob.id,
        workspace_role: "owner",
        account_email: null,
        may_transfer: true,
        verified_at: null,
        transfer: null,
      })
      yield* accept(eve.id, transfer.id)
      assert.deepStrictEqual((yield* read(alice.id, DomainId.make(offered.toUpperCase()))).transfer, {
        id: transfer.id,
        status: "accepted",
      })
      // The owner is no member of the domain's workspace.
      assert.deepInclude(yield* read(alice.id, apart), { workspace_role: null, may_transfer: true })
      yield* seat(elsewhere, bob.id, "admin")
      assert.deepInclude(yield* read(bob.id, apart), { account_id: alice.id, may_transfer: true })
      const all = (yield* domains(bob.id, first)).items.map(({ id }) => id)
      assert.deepStrictEqual(all, [own, offered, apart].sort())
      for (const [limit, sizes] of [[1, [1, 1, 1]], [2, [2, 1]], [3, [3]]] as const) {
        assert.deepStrictEqual(yield* walk((page) => domains(bob.id, page), limit), { ids: all, sizes: [...sizes] })
      }
    }))

  it.effect("a name finds one's own domain of that name, and for an administrator every account's", () =>
    Effect.gen(function* () {
      const { domains, domainsNamed } = yield* AccountReads
      const [alice, carol] = [yield* person({ plan: "pro" }), yield* person()]
      const [one, other] = [yield* domain(alice), yield* domain(alice)]
      const name = `D-${one.slice(0, 8)}.Example`
      const idsOf = Effect.map(({ items }: { readonly items: ReadonlyArray<{ readonly id: string }> }) =>
        items.map(({ id }) => id)
      )
      assert.deepStrictEqual(yield* idsOf(domains(alice.id, first, name)), [one])
      assert.deepStrictEqual(yield* idsOf(domains(alice.id, first)), [one, other].sort())
      assert.deepStrictEqual(yield* idsOf(domains(alice.id, first, "none.example")), [])
      assert.deepStrictEqual(yield* idsOf(domains(carol.id, first, name)), [])
      const [found] = (yield* domainsNamed(carol.id, first, name)).items
      assert.deepInclude(found, { id: one, account_id: alice.id, workspace_role: null, may_transfer: false })
      assert.strictEqual(found!.account_email, alice.email)
      assert.deepStrictEqual(yield* idsOf(domainsNamed(carol.id, first, "none.example")), [])
      yield* feed({ kind: "domain", id: one, removed: true })
      assert.deepStrictEqual(yield* idsOf(domainsNamed(carol.id, first, name)), [])
    }))

  it.effect("an offer whose time is over is no transfer of the domain any more", () =>
    Effect.gen(function* () {
      const { domain: read } = yield* AccountReads
      const [alice, bob] = [yield* person(), yield* person()]
      const id = yield* domain(alice)
      const { id: transferId } = yield* offer(alice.id, id, bob.email)
      const { sql } = yield* Database
      yield* sql`update transfers set expires_at = initiated_at where id = ${transferId}::uuid`
      assert.isNull((yield* read(alice.id, id)).transfer)
    }))

  it.effect("another account's domain, an unknown one, a removed one and a text that is no id are not found", () =>
    Effect.gen(function* () {
      const { domain: read, domains } = yield* AccountReads
      const [alice, bob, eve] = [yield* person(), yield* person(), yield* person()]
      const id = yield* domain(alice)
      // The recipient of an offer sees the transfer, and the domain once it is its own.
      yield* offer(alice.id, id, bob.email)
      for (const stranger of [bob, eve]) {
        assert.strictEqual(yield* codeOf(read(stranger.id, id)), "not_found")
        assert.deepStrictEqual((yield* domains(stranger.id, first)).items, [])
      }
      yield* feed({ kind: "domain", id, removed: true })
      for (const missing of [id, randomUUID(), "x"]) {
        assert.strictEqual(yield* codeOf(read(alice.id, DomainId.make(missing))), "not_found")
      }
      assert.deepStrictEqual((yield* domains(alice.id, first)).items, [])
    }))

  it.effect("among 20,000 rows of others each read finds its own by index", () =>
    Effect.gen(function* () {
      const { account, domain: read, domains, domainsNamed, workspaces } = yield* AccountReads
      const { owner, reads } = yield* Database
      const alice = yield* person()
      const id = yield* domain(alice)
      yield* owner`
        insert into workspaces (id, version, removed, updated_at, name, created_at)
        select gen_random_uuid(), 1, false, now(), 'W', now() from generate_series(1, 20000)`
      yield* owner`
        insert into workspace_memberships (id, version, removed, updated_at, workspace_id, account_id, role)
        select gen_random_uuid(), 1, false, now(), id, gen_random_uuid(), 'owner' from workspaces where name = 'W'`
      yield* owner`
        insert into domains (id, version, removed, updated_at, name, account_id, workspace_id, dkim_selector)
        select gen_random_uuid(), 1, false, now(), id || '.example', gen_random_uuid(), id, 's'
        from workspaces where name = 'W'`
      yield* owner`
        insert into transfers (id, version, command_id, domain_id, domain_name, source_user_id, source_org_id,
          source_label, initiated_by, target_user_id, target_email, status, rotate_dkim, forced, initiated_at, expires_at,
          accept_hash)
        select gen_random_uuid(), 1, gen_random_uuid(), id, name, account_id, workspace_id, 'x', account_id,
          gen_random_uuid(), 'x@example.com', 'pending', false, false, now(), now() + interval '1 day',
          sha256(id::text::bytea)
        from domains where dkim_selector = 's'`
      yield* owner`vacuum analyze workspaces, workspace_memberships, domains, transfers, accounts`
      const statements: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
        account(alice.id),
        workspaces(alice.id, first),
        domains(alice.id, first),
        domainsNamed(alice.id, first, `d-${id.slice(0, 8)}.example`),
        read(alice.id, id),
      ]
      for (const statement of statements) {
        const [rows] = yield* rowsRead(reads, statement)
        assert.isAbove(rows.size, 0)
        for (const [table, n] of rows) assert.isAtMost(n, 50, table)
      }
    }))
})
