/** What deploy/ promises, as far as it can be read: no engine for containers is needed. */
import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { denoRun } from "../bench/harness/Child.ts"
import { permissions } from "../src/cli/NatsPermissions.ts"

const read = (name: string) => readFileSync(new URL(`../deploy/${name}`, import.meta.url), "utf8")

/** The blocks of a mapping in compose.yaml, by their names, with what an anchor brings. */
const blocksOf = (text: string, indent: string): ReadonlyMap<string, string> =>
  new Map(
    text.split(new RegExp(`^${indent}(?=[a-z-]+:)`, "m")).slice(1).map((block) =>
      [block.slice(0, block.indexOf(":")), block] as const
    ),
  )

describe("deploy", () => {
  const compose = read("compose.yaml")
  const top = blocksOf(compose, "")
  const services = blocksOf(top.get("services")!, "  ")

  it("hardens every container", () => {
    const hardened = top.get("x-hardened")!
    const expected = ["read_only: true", "cap_drop: [ALL]", `["no-new-privileges:true"]`, "pids_limit:", "mem_limit:"]
    for (const line of expected) assert.include(hardened, line)
    assert.include(top.get("x-bailiwick")!, "<<: *hardened")
    assert.deepStrictEqual([...services.keys()], ["postgres", "nats", "migrate", "keeper", "one", "two", "nginx"])
    for (const [name, service] of services) assert.match(service, /<<: \*(hardened|bailiwick)\n/, name)
    // What each takes back: without CHOWN nginx does not start, since its workers own its temporary folders.
    const taken = [...services].flatMap(([name, service]) => {
      const match = /cap_add: \[(.*)\]/.exec(service)
      return match === null ? [] : [[name, match[1]]]
    })
    assert.deepStrictEqual(taken, [
      ["postgres", "CHOWN, DAC_OVERRIDE, FOWNER, SETGID, SETUID"],
      ["nginx", "CHOWN, SETGID, SETUID"],
    ])
  })

  it("gives the owner's credentials to what migrates and to one process that keeps the partitions, which serves nothing", () => {
    const owners = [...services].filter(([, service]) => service.includes("owner_password")).map(([name]) => name)
    assert.deepStrictEqual(owners, ["postgres", "migrate", "keeper"])
    assert.notInclude(top.get("x-bailiwick")!, "owner_password")
    assert.match(services.get("keeper")!, /ROLES: timers\n/)
    assert.notMatch(services.get("keeper")!, /ports:|CLUSTER_HOST/)
    // Nothing but the file of the secret brings the variable.
    assert.match(read("start.sh"), /if \[ -f \/run\/secrets\/owner_password \]; then\n {2}DATABASE_OWNER_URL=/)
    assert.notInclude(compose, "DATABASE_OWNER_URL")
  })

  it("has the broker write to disk at once, with the users that the program prints", () => {
    assert.include(read("nats.conf"), "sync_interval: always")
    assert.include(read("nats.conf"), `include "nats-users.conf"`)
    assert.strictEqual(read("nats-users.conf").trim(), permissions)
    assert.notMatch(compose + read("nats.conf") + read("start.sh"), /nats_token/i)
  })

  it("has nginx limit an address, and answer its own name only", () => {
    const nginx = read("nginx.conf")
    for (const line of ["limit_conn connections", "limit_req zone=requests", "http2 on;", "ssl_reject_handshake on;"]) {
      assert.include(nginx, line)
    }
    assert.strictEqual(nginx.match(/server_name mail\.example\.com;/g)?.length, 2)
    assert.notInclude(nginx, "https://$host")
  })

  it("starts the program with the memory that is measured", () => {
    const memory = "--v8-flags=--max-semi-space-size=16"
    const { tasks } = JSON.parse(readFileSync(new URL("../deno.json", import.meta.url), "utf8"))
    assert.include(tasks.start, ` ${memory} `)
    assert.include(read("start.sh"), `memory=${memory}\n`)
    assert.match(read("start.sh"), /exec deno run .* "\$memory" "\$@"/)
    assert.deepStrictEqual(denoRun("src/main.ts").slice(-1), [memory])
  })

  it("gives the program named permissions only, and installs what the lock has", () => {
    for (const name of ["start.sh", "Dockerfile"]) assert.notMatch(read(name), / -A\b|--allow-all|deno", "eval"/, name)
    assert.match(read("start.sh"), /--no-prompt --allow-net .*--allow-write=\/data,\/keys,\/tmp /)
    assert.include(read("Dockerfile"), "RUN deno install --frozen")
    assert.notMatch(read("start.sh"), /--allow-(run|ffi)/)
  })
})
