/** Properties of deploy/ that can be read from its files, without an engine for containers. */
import { assert, describe, it } from "@effect/vitest"
import { validate } from "dockerfile-utils"
import { Result } from "effect"
import { build } from "esbuild"
import { execFileSync, spawnSync } from "node:child_process"
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { denoRun } from "../bench/harness/Child.ts"
import { appPaths } from "../services/platform/AppPaths.ts"
import { type Variable, variables } from "../src/AppConfig/Variables.ts"
import { permissions } from "../src/cli/NatsPermissions.ts"

const read = (name: string) => readFileSync(new URL(`../deploy/${name}`, import.meta.url), "utf8")

/** Variables that deploy/.env cannot set, each with what sets it instead. */
const fixed: Readonly<Record<string, string>> = {
  HOST: "the image",
  PORT: "the image",
  BAILIWICK_HOME: "the image",
  BAILIWICK_KEYS_FILE: "the image",
  BAILIWICK_KEYS: "the file of BAILIWICK_KEYS_FILE",
  DATABASE_URL: "a secret",
  DATABASE_OWNER_URL: "a secret",
  NATS_URL: "a secret",
  NATS_CREDS: "the users of nats-users.conf",
  SMTP_URL: "a secret",
  ROLES: "each service",
  CLUSTER_HOST: "each service",
  DEMO: "compose.try.yaml",
}

/** What keeps nginx from checking a configuration here, or null. */
const lacking = ["nginx", "openssl"].find((program) => spawnSync(program, ["-v"]).error !== undefined) ?? null

const isBefore = (version: string, other: readonly [number, number, number]) => {
  const parts = version.split(".").map(Number)
  const at = other.findIndex((part, i) => part !== parts[i])
  return at >= 0 && parts[at]! < other[at]!
}

/** What `nginx -t` says of a configuration, with a certificate made here and upstreams that have an address. */
const checkedByNginx = (name: string) => {
  const folder = mkdtempSync(join(tmpdir(), "nginx-"))
  try {
    const certificate = ["-keyout", join(folder, "privkey.pem"), "-out", join(folder, "fullchain.pem"), "-days", "1"]
    const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=mail.example.com"]
    execFileSync("openssl", ["req", "-x509", ...key, ...certificate], { stdio: "pipe" })
    const version = /nginx\/([0-9.]+)/.exec(spawnSync("nginx", ["-v"], { encoding: "utf8" }).stderr)![1]!
    const text = read(name)
      .replaceAll("/etc/nginx/tls/", `${folder}/`)
      .replaceAll(/server (?:one|two):8080/g, "server 127.0.0.1:8080")
      .replaceAll(/(?<=pid |_path )\/tmp\//g, `${folder}/`)
    const file = join(folder, "nginx.conf")
    // Debian 12 has nginx 1.22. Before 1.25.1 HTTP/2 was a word of `listen`, of which later versions warn.
    writeFileSync(file, isBefore(version, [1, 25, 1]) ? text.replaceAll(/^ *http2 on;$/gm, "") : text)
    const { status, stderr } = spawnSync("nginx", ["-t", "-c", file], { encoding: "utf8" })
    return { status, warnings: stderr.split("\n").filter((line) => /\[(?:warn|error|emerg|alert|crit)\]/.test(line)) }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** The files and folders of the checkout that the Dockerfile copies. */
const copied = (): ReadonlyArray<string> =>
  [...read("Dockerfile").matchAll(/^COPY (?!--from)(.*)$/gm)].flatMap(([, words]) =>
    words!.split(" ").slice(0, -1).filter((word) => !word.startsWith("--"))
  )

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
    const expected = [
      "read_only: true",
      "cap_drop: [ALL]",
      `["no-new-privileges:true"]`,
      "pids_limit:",
      "mem_limit:",
      "cpus:",
    ]
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

  it("passes every variable of the program that nothing else sets", () => {
    const passed = [...top.get("x-environment")!.matchAll(/^ {2}([A-Z_]+): (.*)$/gm)].map(([, name, value]) => {
      if (value!.startsWith("${")) assert.match(value!, new RegExp(`^\\$\\{${name}:[-?].*\\}$`))
      return name!
    })
    const own = new Set(["DENO_DIR"])
    const names = Object.values(variables).map(({ name }) => name)
    assert.sameMembers(passed.filter((name) => !own.has(name)), names.filter((name) => fixed[name] === undefined))
    for (const name of Object.keys(fixed)) assert.include(names, name)
    for (const name of ["HOST", "PORT", "BAILIWICK_HOME", "BAILIWICK_KEYS_FILE"]) {
      assert.match(read("Dockerfile"), new RegExp(`^ENV .*\\b${name}=`, "m"))
    }
  })

  it("the commands at its head make every secret and the folder that it mounts, and .env has what it requires", ({ skip }) => {
    if (spawnSync("openssl", ["version"]).error !== undefined) return skip("openssl is not installed: nothing was made")
    const commands = compose.split("\n").filter((line) => line.startsWith("#   ")).map((line) => line.slice(4))
      .filter((line) => !line.startsWith("docker "))
    assert.lengthOf(commands, 6)
    const root = mkdtempSync(join(tmpdir(), "deploy-"))
    try {
      const folder = join(root, "deploy")
      cpSync(fileURLToPath(new URL("../deploy", import.meta.url)), folder, { recursive: true })
      // What an operator brings.
      for (const name of ["fullchain.pem", "privkey.pem"]) writeFileSync(join(folder, name), name)
      execFileSync("sh", ["-euc", commands.join("\n")], { cwd: root, stdio: "pipe" })
      const files = [...top.get("secrets")!.matchAll(/file: \.\/(\S+) \}/g)].map(([, path]) => path!)
      assert.lengthOf(files, 5)
      for (const path of files) assert.isAbove(readFileSync(join(folder, path), "utf8").trim().length, 20, path)
      // An absent folder is made by the engine, an absent file would become a folder.
      const mounted = [...compose.matchAll(/- \.\/(\S+?):\//g)].map(([, path]) => path!)
      assert.includeMembers(mounted, ["secrets/fullchain.pem", "secrets/privkey.pem", "secrets/nats", "nginx.conf"])
      for (const path of mounted) assert.isTrue(existsSync(join(folder, path)), path)
      assert.sameMembers(
        readdirSync(join(folder, "secrets/nats")),
        [...permissions.matchAll(/user: (\S+)/g)].map(([, u]) => u!),
      )

      const given = readFileSync(join(folder, ".env"), "utf8").matchAll(/^(?:# )?([A-Z_]+)=(.*)$/gm)
      const env = new Map([...given].map(([, name, value]) => [name!, value!]))
      const required = [...top.get("x-environment")!.matchAll(/\$\{([A-Z_]+):\?/g)].map(([, name]) => name!)
      assert.includeMembers([...env.keys()], required)
      for (const [name, value] of env) {
        assert.include(top.get("x-environment")!, `\n  ${name}: $\{${name}:`, name)
        const variable: Variable<unknown> = Object.values(variables).find((one) => one.name === name)!
        // The file of the secret is the operator's.
        const parsed = variable.parse(value.replace(`,"client_secret_file":"/files/console_secret"`, ""))
        assert.isTrue(Result.isSuccess(parsed), `${name}: ${JSON.stringify(parsed)}`)
      }
    } finally {
      rmSync(root, { recursive: true, force: true })
    }
  })

  it("what a service names is declared, and it waits only for what has a health check or ends", () => {
    for (const name of ["compose.yaml", "compose.try.yaml"]) {
      const all = blocksOf(read(name), "")
      const parts = blocksOf(all.get("services")!, "  ")
      const keys = (part: string) =>
        [...all.get(part)!.matchAll(/(?:^ {2}|[{,] )([a-z_]+): ?\{/gm)].map(([, key]) => key!)
      const used = (
        pattern: RegExp,
      ) => [...new Set([...parts.values()].flatMap((text) => [...text.matchAll(pattern)].map(([, word]) => word!)))]
      assert.sameMembers(used(/(?:- |\[|, )([a-z]+):\/(?=[a-z])/g), keys("volumes"), name)
      assert.sameMembers(used(/(?<=networks: \[.*|^ {6})\b(inside|outside)\b/gm), keys("networks"), name)
      for (const [service, text] of parts) {
        for (const [, other, condition] of text.matchAll(/^ {6}([a-z]+): \{ condition: service_(\w+) \}/gm)) {
          const awaited = parts.get(other!)
          assert.isDefined(awaited, `${name}: ${service} waits for ${other}`)
          if (condition === "completed_successfully") assert.include(awaited!, 'restart: "no"', other)
          if (condition === "healthy") assert.notInclude(awaited!, "healthcheck: { disable: true }", other)
        }
        if (name === "compose.yaml") assert.match(text, /restart: |<<: \*bailiwick/, service)
      }
      const hardened = all.get("x-hardened")!
      for (const line of ["mem_limit: ", "cpus: ", "pids_limit: ", "max-size: "]) assert.include(hardened, line, name)
    }
    const trial = blocksOf(blocksOf(read("compose.try.yaml"), "").get("services")!, "  ").get("bailiwick")!
    const known = new Set([...Object.values(variables).map(({ name }) => name), "DENO_DIR"])
    const set = [...trial.matchAll(/^ {6}([A-Z_]+): /gm)].map(([, name]) => name!)
    assert.includeMembers(set, ["DEMO", "DATABASE_URL", "DATABASE_OWNER_URL", "NATS_URL"])
    assert.deepStrictEqual(set.filter((name) => !known.has(name)), [])
  })

  it("every container that listens has a health check", () => {
    assert.include(read("Dockerfile"), "HEALTHCHECK ")
    for (const name of ["postgres", "nats", "nginx"]) assert.match(services.get(name)!, /healthcheck:\n {6}test:/, name)
    const unchecked = [...services].filter(([, text]) => text.includes("healthcheck: { disable: true }"))
    assert.deepStrictEqual(unchecked.map(([name]) => name), ["migrate", "keeper"])
    assert.include(services.get("nginx")!, `"http://127.0.0.1:8081/"`)
    assert.match(read("nginx.conf"), /listen 127\.0\.0\.1:8081;\n.*\n {4}return 200;/)
  })

  it("the trial starts the demo without a secret, on the host's loopback only", () => {
    const trial = read("compose.try.yaml")
    const parts = blocksOf(blocksOf(trial, "").get("services")!, "  ")
    assert.deepStrictEqual([...parts.keys()], ["postgres", "nats", "entry", "bailiwick"])
    for (const [name, part] of parts) assert.include(part, "<<: *hardened\n", name)
    assert.deepStrictEqual(trial.match(/ports: .*/g), [`ports: ["127.0.0.1:8080:8000"]`])
    assert.notMatch(trial, /secrets|\$\{/)
    const program = parts.get("bailiwick")!
    // The program's stands in the image.
    const unchecked = [...parts].filter(([, part]) => !/healthcheck:\n {6}test:/.test(part)).map(([name]) => name)
    assert.deepStrictEqual(unchecked, ["bailiwick"])
    for (const line of [`network_mode: "service:entry"`, `DEMO: "true"`, "HOST: 127.0.0.1"]) {
      assert.include(program, line)
    }
    assert.match(read("nginx.try.conf"), /listen 8000;\n.*\n {6}proxy_pass http:\/\/127\.0\.0\.1:8080;/)
  })

  it("the page names exactly the paths that nginx lets through", () => {
    const page = readFileSync(new URL("../docs/processes.md", import.meta.url), "utf8")
    const rows = page.slice(page.indexOf("| path | for |")).matchAll(/^\| (`\/.*?) \|/gm)
    const named = [...rows].flatMap(([, cell]) => [...cell!.matchAll(/`([^`]+)`/g)].map(([, path]) => path!))
    const served = read("nginx.conf").split("server_name mail.example.com;").at(-1)!
    const passed = [...served.matchAll(/location (= )?(\S+) \{[^}]*proxy_pass/g)]
      .map(([, exact, path]) => ({ exact: exact !== undefined, path: path! }))
    const prefixes = passed.filter(({ exact }) => !exact).map(({ path }) => path)
    // A location inside another one only sets how its requests are passed on and logged.
    const outermost = passed.filter(({ path }) =>
      !prefixes.some((prefix) => path !== prefix && path.startsWith(prefix))
    )
    assert.sameMembers(named, outermost.map(({ path }) => path))
  })

  it("nginx takes both configurations without a warning", ({ skip }) => {
    if (lacking !== null) return skip(`${lacking} is not installed: no configuration of nginx was checked`)
    for (const name of ["nginx.conf", "nginx.try.conf"]) {
      assert.deepStrictEqual(checkedByNginx(name), { status: 0, warnings: [] }, name)
    }
  })

  it("each alert has a severity, a place on the page, and a test in which it fires and one in which it does not", () => {
    const rules = read("prometheus/alerts.yml").split("- alert: ").slice(1)
    const tests = read("prometheus/alerts.test.yml")
    const headings = readFileSync(new URL("../docs/metrics.md", import.meta.url), "utf8")
    assert.isAbove(rules.length, 0)
    for (const rule of rules) {
      const [name] = rule.split("\n")
      assert.match(rule, /\n {8}for: \d+m\n {8}labels:\n {10}severity: (critical|warning)\n/, name)
      assert.match(rule, /\n {10}summary: \S/, name)
      assert.include(rule, `runbook: docs/metrics.md#${name!.toLowerCase()}\n`)
      assert.include(headings, `\n### ${name}\n`)
      assert.match(tests, new RegExp(`alertname: ${name}\\n +exp_alerts:\\n +- exp_labels:`), name)
      assert.match(tests, new RegExp(`alertname: ${name}\\n +exp_alerts: \\[\\]\\n`), name)
    }
  })

  it("Prometheus and Grafana are hardened, see the processes of compose.yaml, and have files that are there", () => {
    const observing = read("compose.observe.yaml")
    const own = blocksOf(observing, "")
    const parts = blocksOf(own.get("services")!, "  ")
    assert.deepStrictEqual([...parts.keys()], ["keeper", "one", "two", "prometheus", "grafana"])
    const [, port] = /METRICS_PORT: "(\d+)"/.exec(own.get("x-measured")!)!
    const targets = JSON.parse(/targets: (\[.*\])/.exec(read("prometheus/prometheus.yml"))![1]!)
    const measured = [...parts].filter(([, text]) => text.includes(": *measured")).map(([name]) => `${name}:${port}`)
    assert.sameMembers(targets, measured)
    for (const name of ["keeper", "one", "two"]) assert.match(services.get(name)!, /\binside\b/, name)
    for (const name of ["prometheus", "grafana"]) {
      assert.match(parts.get(name)!, /<<: \*hardened\n/, name)
      assert.match(parts.get(name)!, /healthcheck:\n {6}test:/, name)
    }
    for (
      const line of ["read_only: true", "cap_drop: [ALL]", `["no-new-privileges:true"]`, "mem_limit:", "pids_limit:"]
    ) {
      assert.include(own.get("x-hardened")!, line)
    }
    assert.deepStrictEqual(observing.match(/ports: .*/g), [`ports: ["127.0.0.1:3000:3000"]`])
    const mounted = [...observing.matchAll(/- \.\/(\S+?):\//g)].map(([, path]) => path!)
    assert.lengthOf(mounted, 4)
    for (const path of mounted) assert.isTrue(existsSync(new URL(`../deploy/${path}`, import.meta.url)), path)
  })

  it("promtool takes the rules, their tests, and the dashboard's expressions", ({ skip }) => {
    if (spawnSync("promtool", ["--version"]).error !== undefined) {
      return skip("promtool (Debian's package prometheus) is not installed: no rule was checked")
    }
    const file = (name: string) => fileURLToPath(new URL(`../deploy/${name}`, import.meta.url))
    const promtool = (...args: ReadonlyArray<string>) => {
      const { status, stderr, stdout } = spawnSync("promtool", args, { encoding: "utf8" })
      assert.strictEqual(status, 0, stdout + stderr)
    }
    promtool("check", "rules", file("prometheus/alerts.yml"))
    promtool("check", "config", file("prometheus/prometheus.yml"))
    promtool("test", "rules", file("prometheus/alerts.test.yml"))
    const expressions = [...read("grafana/bailiwick.json").matchAll(/"expr": (".*"),?\n/g)].map(([, text]) =>
      JSON.parse(text!).replaceAll("$__rate_interval", "5m").replaceAll("$instance", ".*")
    )
    assert.isAbove(expressions.length, 20)
    const folder = mkdtempSync(join(tmpdir(), "promtool-"))
    try {
      // JSON is YAML.
      const rules = expressions.map((expr, n) => ({ record: `panel_${n}`, expr }))
      writeFileSync(join(folder, "panels.yml"), JSON.stringify({ groups: [{ name: "panels", rules }] }))
      promtool("check", "rules", join(folder, "panels.yml"))
    } finally {
      rmSync(folder, { recursive: true })
    }
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
    assert.match(read("start.sh"), /exec deno run .* "\$memory" \/app\/bailiwick\.js "\$@"/)
    assert.deepStrictEqual(denoRun("src/main.ts").slice(-1), [memory])
  })

  it("the Dockerfile is clean by its linter, and copies what the build's folder has", () => {
    const text = read("Dockerfile")
    assert.deepStrictEqual(validate(text).map(({ message, range }) => `${range.start.line + 1}: ${message}`), [])
    const names = copied()
    assert.isAbove(names.length, 15)
    for (const name of names) assert.isTrue(existsSync(new URL(`../${name}`, import.meta.url)), name)
    const ignored = read("Dockerfile.dockerignore").split("\n")
    assert.deepStrictEqual(
      ignored.filter((line) => line.startsWith("!")).map((line) => line.slice(1)).sort(),
      names.toSorted(),
    )
    assert.strictEqual(ignored[0], "*")
  })

  it("the Dockerfile copies every file of which the bundle and the console are made", async () => {
    const root = fileURLToPath(new URL("..", import.meta.url))
    const made = await build({
      absWorkingDir: root,
      entryPoints: ["src/Bailiwick.ts", "console/Main.tsx", ".ci/bundle.mjs"],
      outdir: "out",
      bundle: true,
      write: false,
      metafile: true,
      packages: "external",
      format: "esm",
      platform: "node",
      loader: { ".css": "empty" },
      logLevel: "silent",
    })
    const files = Object.keys(made.metafile.inputs)
    const isCopied = (file: string) => copied().some((path) => file === path || file.startsWith(`${path}/`))
    assert.isAbove(files.length, 500)
    assert.deepStrictEqual(files.filter((file) => !isCopied(file)), [], "COPY it in deploy/Dockerfile")
  })

  it("the program has named permissions only, and the locked packages", () => {
    for (const name of ["start.sh", "Dockerfile"]) assert.notMatch(read(name), / -A\b|--allow-all|deno", "eval"/, name)
    assert.match(read("start.sh"), /--no-prompt --allow-net .*--allow-write=\/data,\/keys,\/tmp /)
    // Packages come by .ci/packages.mjs, frozen.
    assert.include(read("Dockerfile"), "RUN deno task bundle /app\n")
    assert.notMatch(read("start.sh"), /--allow-(run|ffi)/)
  })
})
