/** Properties of deploy/ that can be read from its files, without an engine for containers. */
import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { denoRun } from "../bench/harness/Child.ts"
import { appPaths } from "../services/platform/AppPaths.ts"
import { permissions } from "../src/cli/NatsPermissions.ts"

const read = (name: string) => readFileSync(new URL(`../deploy/${name}`, import.meta.url), "utf8")

/** The blocks of a mapping in compose.yaml, by their names, with anchors resolved. */
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

  it("every container is hardened", () => {
    const hardened = top.get("x-hardened")!
    const expected = ["read_only: true", "cap_drop: [ALL]", `["no-new-privileges:true"]`, "pids_limit:", "mem_limit:"]
    for (const line of expected) assert.include(hardened, line)
    assert.include(top.get("x-bailiwick")!, "<<: *hardened")
    assert.deepStrictEqual([...services.keys()], ["postgres", "nats", "migrate", "keeper", "one", "two", "nginx"])
    for (const [name, service] of services) assert.match(service, /<<: \*(hardened|bailiwick)\n/, name)
    // The capability that a service takes back: without CHOWN nginx does not start, since workers own its temporary
    // folders.
    const taken = [...services].flatMap(([name, service]) => {
      const match = /cap_add: \[(.*)\]/.exec(service)
      return match === null ? [] : [[name, match[1]]]
    })
    assert.deepStrictEqual(taken, [
      ["postgres", "CHOWN, DAC_OVERRIDE, FOWNER, SETGID, SETUID"],
      ["nginx", "CHOWN, SETGID, SETUID"],
    ])
  })

  it("the owner's credentials go to the migrations and to one process without a port, which keeps the partitions", () => {
    const owners = [...services].filter(([, service]) => service.includes("owner_password")).map(([name]) => name)
    assert.deepStrictEqual(owners, ["postgres", "migrate", "keeper"])
    assert.notInclude(top.get("x-bailiwick")!, "owner_password")
    assert.match(services.get("keeper")!, /ROLES: timers\n/)
    assert.notMatch(services.get("keeper")!, /ports:|CLUSTER_HOST/)
    // Nothing but the file of the secret brings the variable.
    assert.match(read("start.sh"), /if \[ -f \/run\/secrets\/owner_password \]; then\n {2}DATABASE_OWNER_URL=/)
    assert.notInclude(compose, "DATABASE_OWNER_URL")
  })

  it("the broker writes to disk at once, with the users that the program prints", () => {
    assert.include(read("nats.conf"), "sync_interval: always")
    assert.include(read("nats.conf"), `include "nats-users.conf"`)
    assert.strictEqual(read("nats-users.conf").trim(), permissions)
    assert.notMatch(compose + read("nats.conf") + read("start.sh"), /nats_token/i)
  })

  it("nginx limits requests per address, and answers its own name only", () => {
    const nginx = read("nginx.conf")
    for (const line of ["limit_conn connections", "limit_req zone=requests", "http2 on;", "ssl_reject_handshake on;"]) {
      assert.include(nginx, line)
    }
    assert.strictEqual(nginx.match(/server_name mail\.example\.com;/g)?.length, 2)
    assert.notInclude(nginx, "https://$host")
  })

  it("nginx lets every linked path through, and logs no token of one", () => {
    const nginx = read("nginx.conf")
    const blocks = nginx.split(/^ {4}(?=location )/m)
    for (const path of ["/", ...Object.values(appPaths)]) {
      const [, first] = /^(\/[a-z-]*\/?)/.exec(path)!
      const block = blocks.find((one) =>
        one.startsWith(`location ${first!.length > 1 && first!.endsWith("/") ? "" : "= "}${first} {`)
      )
      assert.include(block ?? "", "proxy_pass http://bailiwick;", path)
      if (!path.includes(":token")) continue
      assert.include(block!, "error_log stderr crit;", path)
      assert.include(nginx, `~*^/+${first!.slice(1, -1)}(/|$) `)
    }
  })

  it("the program starts with the measured amount of memory", () => {
    const memory = "--v8-flags=--max-semi-space-size=16"
    const { tasks } = JSON.parse(readFileSync(new URL("../deno.json", import.meta.url), "utf8"))
    assert.include(tasks.start, ` ${memory} `)
    assert.include(read("start.sh"), `memory=${memory}\n`)
    assert.match(read("start.sh"), /exec deno run .* "\$memory" "\$@"/)
    assert.deepStrictEqual(denoRun("src/main.ts").slice(-1), [memory])
  })

  it("the program has named permissions only, and the locked packages", () => {
    for (const name of ["start.sh", "Dockerfile"]) assert.notMatch(read(name), / -A\b|--allow-all|deno", "eval"/, name)
    assert.match(read("start.sh"), /--no-prompt --allow-net .*--allow-write=\/data,\/keys,\/tmp /)
    assert.include(read("Dockerfile"), "RUN deno install --frozen")
    assert.notMatch(read("start.sh"), /--allow-(run|ffi)/)
  })
})
