/**
 * The files of deploy/, run without containers: roles of postgres-roles.sh, nats.conf and its users, start.sh with its
 * exact permissions. The files are used as they are, except for addresses, names of roles and folders.
 */
import { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { Reactivity } from "effect/reactivity"
import { spawnSync } from "node:child_process"
import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import process from "node:process"
import { natsBinary, syncsAlways } from "../../src/embedded/NatsBinary.ts"
import { freePort } from "../../src/embedded/FreePorts.ts"
import { makeAuthority } from "../services/platform/Outbound/Certificates.ts"
import { ownPostgres } from "../support/OwnPostgres.ts"
import { homeOnDisk, root, runtime, start } from "../support/Processes.ts"
import { api } from "./support/ApiClient.ts"
import { feed, mailEvent } from "./support/EventFeed.ts"
import { receiver } from "./support/Receiver.ts"
import { until } from "./support/Until.ts"
import { hook, totals } from "./support/ProgramWebhooks.ts"
import { accountLine, issuer } from "./support/ProgramFixture.ts"

const shipped = (name: string) => readFileSync(join(root, "deploy", name), "utf8")

/** Replaces texts, each of which must be there. */
const exchanged = (text: string, pairs: Readonly<Record<string, string>>) =>
  Object.entries(pairs).reduce((now, [from, to]) => {
    assert.include(now, from)
    return now.replaceAll(from, to)
  }, text)

const users = [...shipped("nats-users.conf").matchAll(/^ *user: (.*)$/gm)].map(([, user]) => user!)
const database = { bailiwick_owner: "deployed_owner", bailiwick_app: "deployed_app" }

/** The files of the secrets, as the head of compose.yaml makes them. */
const secretsIn = (folder: string) => {
  mkdirSync(join(folder, "nats"), { recursive: true })
  const secret = (name: string) => {
    // One that looks like a number, and one that ends in a newline.
    const value = name === "nats/bailiwick" ? "12345678e9" : crypto.randomUUID().replaceAll("-", "")
    writeFileSync(join(folder, name), `${value}\n`)
    return value
  }
  return Object.fromEntries(
    ["owner_password", "app_password", ...users.map((user) => `nats/${user}`)].map((name) => [name, secret(name)]),
  )
}

/** PostgreSQL with the roles that postgres-roles.sh makes. */
const postgres = Effect.fnUntraced(function* (secrets: Readonly<Record<string, string>>) {
  const { ownerUrl } = yield* ownPostgres
  const superuser = yield* PgClient.make({ url: ownerUrl, maxConnections: 1 }).pipe(Effect.provide(Reactivity.layer))
  const script = exchanged(shipped("postgres-roles.sh"), {
    ...database,
    "database bailiwick ": "database deployed ",
    ":'owner'": `'${secrets["owner_password"]}'`,
    ":'app'": `'${secrets["app_password"]}'`,
  })
  const statements = /<<'SQL'\n([^]*)\nSQL/.exec(script)![1]!.split("\n")
  for (const statement of statements) yield* superuser.unsafe(statement)
  return new URL(Redacted.value(ownerUrl)).host
})

/** nats-server, started by the command of compose.yaml on the shipped files. */
const broker = Effect.fnUntraced(function* (folder: string, secrets: string) {
  const program = yield* Effect.orDie(natsBinary(folder))
  const [port, monitor] = [yield* Effect.orDie(freePort()), yield* Effect.orDie(freePort())]
  const conf = exchanged(shipped("nats.conf"), {
    "0.0.0.0:4222": `127.0.0.1:${port}`,
    "127.0.0.1:8222": `127.0.0.1:${monitor}`,
    "/data": join(folder, "nats"),
  })
  const path = join(folder, "nats.conf")
  writeFileSync(join(folder, "nats-users.conf"), shipped("nats-users.conf"))
  // Debian 12 has an older one.
  const old = !(yield* Effect.orDie(syncsAlways(program)))
  writeFileSync(path, old ? conf.replace("sync_interval: always\n", "") : conf)
  if (old) console.log("sync_interval: always was not tried: this nats-server is older than 2.10")
  const bin = join(folder, "bin")
  mkdirSync(bin)
  symlinkSync(program, join(bin, "nats-server"))
  const [, block] = /command:\n {6}- \|\n([^]*?)\n {4}volumes:/.exec(shipped("compose.yaml"))!
  const command = exchanged(block!.replaceAll("$$", "$"), {
    "/run/secrets/nats": join(secrets, "nats"),
    "/etc/nats/nats.conf": path,
  })
  const env = { ...process.env, PATH: `${bin}:${process.env["PATH"]}` }
  const checked = spawnSync("/bin/sh", ["-c", command.replace("nats-server -c", "nats-server -t -c")], {
    env,
    encoding: "utf8",
  })
  assert.strictEqual(checked.status, 0, checked.stderr)
  const server = yield* start({ command: ["/bin/sh", "-c", command], module: "sh", env: { PATH: env.PATH } })
  yield* server.line(/Server is ready/)
  return port
})

/** The program as the image has it. */
const bundle = (folder: string) => {
  const to = join(folder, "app")
  const [command, ...args] = runtime()
  const { status, stderr } = spawnSync(command!, [...args, ".ci/bundle.mjs", to], { cwd: root, encoding: "utf8" })
  assert.strictEqual(status, 0, stderr)
  // All that the image adds to its base, which has Deno (96 MB), Alpine and glibc: 180 MB at most together.
  const files = readdirSync(to, { withFileTypes: true, recursive: true }).filter((entry) => entry.isFile())
  const size = files.reduce((total, { name, parentPath }) => total + statSync(join(parentPath, name)).size, 0)
  assert.isBelow(size, 8_000_000)
  return to
}

/** Runs start.sh with the secrets of a service; returns the command that starts its programs. */
const image = (folder: string, secrets: string, hosts: { readonly postgres: string; readonly nats: string }) => {
  const app = bundle(folder)
  const bin = join(folder, "bin")
  symlinkSync(process.execPath, join(bin, "deno"))
  const paths = Object.fromEntries(["data", "keys", "tmp"].map((name) => [name, join(folder, name)]))
  for (const path of Object.values(paths)) mkdirSync(path, { mode: 0o700 })
  const runs = (given: string) => {
    const file = join(folder, `start-${given}.sh`)
    writeFileSync(
      file,
      exchanged(shipped("start.sh"), {
        ...database,
        "@postgres:5432/bailiwick": `@${hosts.postgres}/deployed`,
        "@nats:4222": `@${hosts.nats}`,
        "/run/secrets": join(folder, `secrets-${given}`),
        "/app/": `${app}/`,
        "/data,/keys,/tmp": `${paths["data"]},${paths["keys"]},${paths["tmp"]}`,
      }),
    )
    return file
  }
  const give = (given: string, names: ReadonlyArray<string>) => {
    const to = join(folder, `secrets-${given}`)
    mkdirSync(to)
    for (const name of names) writeFileSync(join(to, name.replace("nats/", "nats_")), readFileSync(join(secrets, name)))
    return runs(given)
  }
  const weak = give("weak", ["app_password", "nats/bailiwick"])
  const owner = give("owner", ["owner_password", "app_password", "nats/bailiwick"])
  return {
    paths,
    start: (by: "weak" | "owner", env: Readonly<Record<string, string>>, ...args: ReadonlyArray<string>) =>
      start({
        command: ["/bin/sh", by === "weak" ? weak : owner],
        sources: true,
        module: args[0]!,
        args: args.slice(1),
        env: {
          PATH: `${bin}:${process.env["PATH"]}`,
          // As the image and compose.yaml set them.
          HOST: "127.0.0.1",
          BAILIWICK_HOME: paths["data"]!,
          BAILIWICK_KEYS_FILE: join(paths["keys"]!, "keys.json"),
          LOG_FORMAT: "json",
          CLUSTER: "on",
          DENO_DIR: join(paths["tmp"]!, "deno"),
          TMPDIR: paths["tmp"]!,
          ...env,
        },
      }),
  }
}

/** The image's probe, at another port. */
const probe = (port: number) => {
  const [, command] = /^HEALTHCHECK [^]*?CMD ([^]*?)\nENTRYPOINT/m.exec(shipped("Dockerfile"))!
  return exchanged(command!.replaceAll("\\\n", " "), { "8080": String(port) })
}

describe("deploy", () => {
  it.live.skipIf(!("Deno" in globalThis))(
    "starts, migrates, delivers and backs up with the permissions and credentials that it ships",
    () =>
      Effect.gen(function* () {
        const folder = yield* homeOnDisk
        const secrets = join(folder, "secrets")
        const values = secretsIn(secrets)
        const host = yield* postgres(values)
        const nats = yield* broker(folder, secrets)
        const { paths, start } = image(folder, secrets, { postgres: host, nats: `127.0.0.1:${nats}` })
        const authority = makeAuthority("Receivers")
        const ca = join(folder, "receivers.pem")
        writeFileSync(ca, authority.certificate)
        const { configuration, cookie } = yield* issuer
        const port = yield* Effect.orDie(freePort())
        const env = {
          PORT: String(port),
          MAIL_ISSUERS: configuration,
          MAIL_FROM: "no-reply@mail.example.com",
          WEBHOOKS_CA_FILE: ca,
          WEBHOOKS_ALLOWED_CIDRS: "127.0.0.0/8",
        }
        const said: Array<() => string> = []
        const typed = Effect.fnUntraced(function* (by: "weak" | "owner", ...args: ReadonlyArray<string>) {
          const program = yield* start(by, env, ...args)
          said.push(program.output)
          return { code: yield* program.exited, output: program.output() }
        })

        const migrated = yield* typed("owner", "migrate")
        assert.strictEqual(migrated.code, 0, migrated.output)
        const program = yield* start("weak", env, "start")
        said.push(program.output)
        const [, origin] = yield* program.line(/bailiwick ready on (http:\S+)/)
        const keeper = yield* start(
          "owner",
          { ...env, BAILIWICK_HOME: join(paths["data"]!, "keeper"), ROLES: "timers" },
          "start",
        )
        said.push(keeper.output)
        yield* keeper.line(/bailiwick ready: timers\n/)
        const healthy = spawnSync("/bin/sh", ["-c", probe(port)], {
          env: { ...process.env, PATH: `${join(folder, "bin")}:${process.env["PATH"]}` },
          encoding: "utf8",
        })
        assert.strictEqual(healthy.status, 0, healthy.stderr)

        // Each publisher as the user that it has.
        const as = (user: string) =>
          feed(Redacted.make(`nats://${user}:${values[`nats/${user}`]}@127.0.0.1:${nats}`), `_INBOX_${user}`)
        const id = crypto.randomUUID()
        yield* (yield* as("mail_directory")).publish("intake.v1.directory.account", accountLine(id))
        const session = api(() => origin!, yield* cookie(id))
        yield* until("the account", session.get("/v1/api-keys/"), ({ status }) => status === 200)
        const target = yield* receiver(authority.issue("localhost"))
        const made = yield* hook(session, target, "/deployed", ["email.sent"])
        yield* (yield* as("mail_events")).events([mailEvent(id, "one", "email.sent")])
        yield* until("the delivery", totals(session, made.id), ({ delivered }) => delivered === 1)
        assert.deepStrictEqual(target.at("/deployed").map(({ fault }) => fault), [null])

        const backup = join(paths["data"]!, "backup")
        const backedUp = yield* typed("weak", "backup", backup)
        assert.strictEqual(backedUp.code, 0, backedUp.output)
        assert.isAbove(statSync(backup).size, 1_000)
        const doctor = yield* typed("weak", "doctor")
        assert.strictEqual(doctor.code, 0, doctor.output)
        for (const what of ["roles", "schema", "partitions", "streams"]) {
          assert.match(doctor.output, new RegExp(`^ok +${what} `, "m"))
        }
        // Folders that it may not write to.
        const elsewhere = yield* typed("weak", "backup", join(folder, "backup"))
        assert.strictEqual(elsewhere.code, 1)
        said.pop()
        for (const one of [program, keeper]) {
          yield* one.kill("SIGTERM")
          assert.strictEqual(yield* one.exited, 0)
        }
        for (const output of said) assert.notMatch(output(), /NotCapable|Requires \w+ access|"level":"(ERROR|FATAL)"/)
      }).pipe(Effect.scoped),
    300_000,
  )
})
