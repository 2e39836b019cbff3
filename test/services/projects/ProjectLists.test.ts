/** Launch proposals, owners and events of a project, a page at a time. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import { type PersonId, ProjectId } from "../../../schemas/BrandedIds.ts"
import { Projects } from "../../../services/projects/Projects.ts"
import { timed } from "../../support/Fixtures.ts"
import { access, institution, member, owner, person, project } from "../../support/TestIdentity.ts"
import { askAccess, codeOf, fixture, own, propose, services, website } from "../decisions/RequestFixture.ts"

const first = { limit: 2, afterId: null }

layer(services, { excludeTestServices: true, timeout: "2 minutes" })("Lists of a project", (it) => {
  it.effect("launch proposals come newest first, each once, over pages", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const projects = yield* Projects
      const projectId = yield* project(w.fern, { state: "registered" })
      yield* owner(projectId, w.pat)
      const made = [
        yield* propose(projectId, w.pat),
        yield* propose(projectId, w.pat),
        yield* propose(projectId, w.pat),
      ]
      const asked = { personId: w.sam, projectId }
      const { items: newest } = yield* projects.launches({ ...asked, ...first })
      assert.deepStrictEqual(newest.map(({ launch_id, state }) => [launch_id, state]), [
        [made[2]!.launch_id, "proposed"],
        [made[1]!.launch_id, "superseded"],
      ])
      const { items: older } = yield* projects.launches({ ...asked, limit: 2, afterId: newest.at(-1)!.launch_id })
      assert.deepStrictEqual(older.map(({ launch_id }) => launch_id), [made[0]!.launch_id])
      const { launches } = yield* projects.read(asked)
      assert.deepStrictEqual([...newest, ...older], launches)
    })))

  it.effect("a member is offered what it has no Access to and waits for none, over pages; others nothing", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const projects = yield* Projects
      const [plain, ended, early] = [yield* person(), yield* person(), yield* person()]
      yield* member(w.fern, plain, "member")
      yield* member(w.fern, ended, "member", { state: "ended" })
      yield* member(w.fern, early, "member", { effective_from: "2126-01-01T00:00:00Z" })
      const made = [yield* project(w.fern), yield* project(w.fern), yield* project(w.fern)].sort()
      yield* project(w.fern, { state: "withdrawn" })
      yield* project(yield* institution())
      const held = yield* project(w.fern)
      yield* access(w.fern, held, plain)
      const waiting = yield* project(w.fern)
      yield* askAccess(w.fern, waiting, plain)
      const asked = { personId: plain, institutionId: w.fern }
      const { items: some } = yield* projects.requestable({ ...asked, ...first })
      const { items: rest } = yield* projects.requestable({ ...asked, limit: 2, afterId: some.at(-1)!.project_id })
      assert.deepStrictEqual([...some, ...rest].map(({ project_id }) => project_id), made)
      assert.deepStrictEqual(some[0], { project_id: made[0]!, name: "Portal" })
      const codes = yield* Effect.forEach(
        [ended, w.oz, w.pat, early],
        (personId) => codeOf(projects.requestable({ ...asked, personId, ...first })),
      )
      assert.deepStrictEqual(codes, ["not_found", "not_found", "not_found", "membership_not_active"])
    })))

  it.effect("owners come by person, former ones included, over pages", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const projects = yield* Projects
      const projectId = yield* project(w.fern)
      yield* owner(projectId, w.pat)
      yield* own(projectId, w.ada, w.abe)
      yield* own(projectId, w.ada, w.sam)
      yield* own(projectId, w.ada, w.sam, false)
      const asked = { personId: w.pat, projectId }
      const { items: some } = yield* projects.owners({ ...asked, ...first })
      const { items: rest } = yield* projects.owners({ ...asked, limit: 2, afterId: some.at(-1)!.person_id })
      assert.deepStrictEqual([some.length, rest.length], [2, 1])
      const found = Object.fromEntries([...some, ...rest].map(({ active, person_id }) => [person_id, active]))
      assert.deepStrictEqual(found, { [w.pat]: true, [w.abe]: true, [w.sam]: false })
      const { owners } = yield* projects.read(asked)
      assert.sameDeepMembers([...some, ...rest], [...owners!])
    })))

  it.effect("events come decoded, newest first, over pages", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const projects = yield* Projects
      const { project_id: projectId } = yield* website(w, w.pat)
      yield* own(projectId, w.ada, w.abe)
      const asked = { personId: w.pat, projectId }
      const { items: newest } = yield* projects.events({ ...asked, ...first })
      const { items: older } = yield* projects.events({ ...asked, limit: 2, afterId: newest.at(-1)!.event_id })
      const all = [...newest, ...older]
      assert.deepStrictEqual(all.map(({ kind, position }) => [kind, position]), [
        ["project-owner-changed", 3],
        ["project-owner-changed", 2],
        ["project-registered", 1],
      ])
      assert.deepInclude(all[2]!, {
        event_type: "https://schemas.bailiwick.dev/secevent/lifecycle/event-type/project-registered",
        signed_at: null,
      })
      assert.deepInclude(all[2]!.subject, { tenant: { format: "opaque", id: w.fern } })
      assert.deepStrictEqual(yield* projects.events({ ...asked, limit: 2, afterId: randomUUID() }), { items: [] })
    })))

  it.effect("a person with Access only, and a person of another institution, learn nothing", () =>
    timed(Effect.gen(function* () {
      const w = yield* fixture
      const projects = yield* Projects
      const projectId = yield* project(w.fern)
      const user = yield* person()
      yield* access(w.fern, projectId, user)
      const elsewhere = yield* person()
      yield* member(yield* institution(), elsewhere, "administrator")
      const plain = yield* person()
      yield* member(w.fern, plain, "member")
      const asked = (personId: PersonId, id = projectId) => {
        const page = { ...first, personId, projectId: id }
        return Effect.all([
          codeOf(projects.launches(page)),
          codeOf(projects.owners(page)),
          codeOf(projects.events(page)),
        ])
      }
      const nothing = ["not_found", "not_found", "not_found"]
      assert.deepStrictEqual(yield* asked(user), nothing)
      assert.deepStrictEqual(yield* asked(elsewhere), nothing)
      assert.deepStrictEqual(yield* asked(w.sam, ProjectId.make(randomUUID())), nothing)
      assert.deepStrictEqual(yield* asked(plain), ["role_required", "role_required", "role_required"])
      // A Sponsor decides, and is no owner; an operator operates here as a member of the institution only.
      assert.deepStrictEqual(yield* asked(w.sam), ["done", "done", "role_required"])
      assert.deepStrictEqual(yield* asked(w.oz), ["done", "done", "role_required"])
      yield* member(w.fern, w.oz, "member")
      assert.deepStrictEqual(yield* asked(w.oz), ["done", "done", "done"])
    })))
})
