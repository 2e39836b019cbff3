/** The manifests of deploy/kubernetes: against the schemas of Kubernetes, and against what the program and its image say. */
import { assert, describe, it } from "@effect/vitest"
import { loadAll } from "js-yaml"
import { Deployment } from "kubernetes-models/apps/v1/Deployment"
import { Job } from "kubernetes-models/batch/v1/Job"
import { NetworkPolicy } from "kubernetes-models/networking.k8s.io/v1/NetworkPolicy"
import { PodDisruptionBudget } from "kubernetes-models/policy/v1/PodDisruptionBudget"
import { ConfigMap } from "kubernetes-models/v1/ConfigMap"
import { Namespace } from "kubernetes-models/v1/Namespace"
import { Service } from "kubernetes-models/v1/Service"
import type { IPodSpec as PodSpec } from "kubernetes-models/v1/PodSpec"
import { Redacted } from "effect"
import { spawnSync } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { parseRing } from "../services/platform/security/KeyRing.ts"
import { roles } from "../src/AppConfig.ts"
import { variables } from "../src/AppConfig/Variables.ts"

const declarations = fileURLToPath(new URL("node_modules/kubernetes-models/", import.meta.url))
const folder = new URL("../deploy/kubernetes/", import.meta.url)
const dockerfile = readFileSync(new URL("../deploy/Dockerfile", import.meta.url), "utf8")

const kinds = { ConfigMap, Deployment, Job, Namespace, NetworkPolicy, PodDisruptionBudget, Service }
type Kind = keyof typeof kinds

const documents = readdirSync(folder).filter((name) => name.endsWith(".yaml")).sort()
  .flatMap((name) => loadAll(readFileSync(new URL(name, folder), "utf8")))

/** The members that Kubernetes does not know, by their paths. The schemas let them pass, so the declarations are asked. */
const unknown = (value: unknown, file: string, path: string): ReadonlyArray<string> => {
  if (Array.isArray(value)) return value.flatMap((item, i) => unknown(item, file, `${path}[${i}]`))
  const text = readFileSync(file, "utf8")
  const imported = new Map(
    [...text.matchAll(/^import \{ (.*) \} from "(\..*)\.js";$/gm)].flatMap(([, names, from]) =>
      names!.split(", ").map((name) => [name, join(dirname(file), `${from}.d.ts`)] as const)
    ),
  )
  const members = new Map([...text.matchAll(/^ {4}"(.*?)"\??: (.*?);?$/gm)].map(([, name, type]) => [name!, type!]))
  return Object.entries(value as object).flatMap(([name, member]) => {
    const type = members.get(name)
    if (type === undefined) return [`${path}.${name}`]
    const next = imported.get(/\bII\w+/.exec(type)?.[0] ?? "")
    return next === undefined || typeof member !== "object" ? [] : unknown(member, next, `${path}.${name}`)
  })
}

const unknownOf = (document: unknown) => {
  const { apiVersion, kind } = document as { readonly apiVersion: string; readonly kind: string }
  return unknown(document, join(declarations, apiVersion, `${kind}.d.ts`), kind)
}

/** A document as its kind's class, whose schema it has passed. */
const checked = (document: unknown) => {
  const { kind } = document as { readonly kind: Kind }
  const made = new kinds[kind](document as never)
  made.validate()
  return made
}
const of = <A extends object>(kind: new (...data: never) => A): ReadonlyArray<A> =>
  documents.map(checked).flatMap((made) => made instanceof kind ? [made] : [])

const podsOf = (): ReadonlyArray<readonly [string, PodSpec]> =>
  [...of(Deployment), ...of(Job)].map(({ metadata, spec }) => [metadata!.name!, spec!.template.spec!])

const variable = (spec: PodSpec, name: string) => spec.containers[0]!.env?.find((one) => one.name === name)

describe("deploy/kubernetes", () => {
  it("every manifest is as Kubernetes wants it, in the namespace, and a wrong one would not be", () => {
    assert.isAbove(documents.length, 10)
    for (const document of documents) {
      const { kind, metadata } = checked(document)
      assert.deepStrictEqual(unknownOf(document), [])
      if (kind !== "Namespace") assert.strictEqual(metadata!.namespace, "bailiwick", `${kind} ${metadata!.name}`)
    }
    const [first] = documents.filter((one) => (one as { readonly kind: string }).kind === "Deployment")
    const wrong = (from: string, to: string) => JSON.parse(JSON.stringify(first).replace(from, to)) as unknown
    assert.throws(() => checked(wrong(`"replicas":2`, `"replicas":"two"`)), /replicas/)
    const misspelt = unknownOf(wrong(`"failureThreshold"`, `"failureTreshold"`))
    assert.deepStrictEqual(misspelt, ["Deployment.spec.template.spec.containers[0].startupProbe.failureTreshold"])
  })

  it("sets variables that the program has, and no secret", () => {
    const known = new Set(Object.values(variables).map(({ name }) => name))
    const [config] = of(ConfigMap)
    const set = [...Object.keys(config!.data!), ...podsOf().flatMap(([, { containers: [one] }]) => one!.env ?? [])]
      .map((entry) => typeof entry === "string" ? entry : entry.name)
    for (const name of set) if (name !== "DENO_DIR") assert.isTrue(known.has(name), name)
    const secrets = Object.values(variables).filter(({ name }) => /_URL$|KEYS$|CREDS$|HEADERS$/.test(name))
      .map(({ name }) => name).filter((name) => !["PUBLIC_URL", "PORTAL_URL", "MAIL_SIGN_IN_URL"].includes(name))
    for (const name of secrets) assert.notInclude(set, name)
  })

  it("the page's command makes a key ring that the program takes", ({ skip }) => {
    if (spawnSync("openssl", ["version"]).error !== undefined) return skip("openssl is not installed")
    const page = readFileSync(new URL("../docs/processes.md", import.meta.url), "utf8")
    const [, text] = /BAILIWICK_KEYS=(".*")$/m.exec(page)!
    const { stdout } = spawnSync("sh", ["-c", `printf %s ${text}`], { encoding: "utf8" })
    assert.strictEqual(parseRing(Redacted.make(stdout), "the page").active, "k1")
  })

  it("every role runs, in two processes at least, and only what migrates or keeps the partitions is the owner", () => {
    const running = new Map<string, number>()
    for (const { spec } of of(Deployment)) {
      for (const role of variable(spec!.template.spec!, "ROLES")!.value!.split(",")) {
        running.set(role, (running.get(role) ?? 0) + (spec!.replicas ?? 1))
      }
    }
    assert.sameMembers([...running.keys()], [...roles])
    for (const [role, count] of running) assert.isAtLeast(count, 2, role)
    const owners = podsOf().filter(([, { containers: [one] }]) =>
      one!.envFrom!.some(({ secretRef }) => secretRef?.name === "bailiwick-owner")
    )
    assert.sameMembers(owners.map(([name]) => name), ["bailiwick-migrate", "bailiwick-keeper"])
  })

  it("ports, probes and the time to end are those of the image and the program", () => {
    const port = Number(/ PORT=(\d+)/.exec(dockerfile)![1])
    const [config] = of(ConfigMap)
    for (const { metadata, spec } of of(Deployment)) {
      const pod = spec!.template.spec!
      const [container] = pod.containers
      const ports = Object.fromEntries(container!.ports!.map(({ containerPort, name }) => [name, containerPort]))
      const own = variable(pod, "ROLES")!.value!.split(",")
      assert.deepStrictEqual(ports, {
        metrics: Number(config!.data!["METRICS_PORT"]),
        ...(own.includes("api") ? { api: port } : {}),
        ...(own.includes("actors") ? { cluster: Number(config!.data!["CLUSTER_PORT"]) } : {}),
      }, metadata!.name)
      const { livenessProbe, readinessProbe } = container!
      if (own.includes("api")) {
        assert.deepStrictEqual([livenessProbe!.httpGet!.path, readinessProbe!.httpGet!.path], ["/health", "/ready"])
      } else assert.strictEqual(livenessProbe!.tcpSocket!.port, "metrics")
      // 25 seconds at most (docs/processes.md), after five of waiting.
      assert.isAbove(pod.terminationGracePeriodSeconds!, 30)
    }
    const open = of(NetworkPolicy).flatMap(({ spec }) => spec!.ingress!)
    const cluster = open.filter(({ ports }) => ports!.some(({ port }) => port === 7400))
    assert.deepStrictEqual(cluster.map(({ from }) => from), [[{ podSelector: { matchLabels: { app: "bailiwick" } } }]])
  })

  it("every pod is hardened, and its budget keeps one of those that run in two", () => {
    for (const [name, { automountServiceAccountToken, containers: [one], securityContext }] of podsOf()) {
      assert.deepInclude(securityContext!, { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } }, name)
      assert.isFalse(automountServiceAccountToken, name)
      assert.deepStrictEqual(one!.securityContext, {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      }, name)
      assert.isDefined(one!.resources!.limits!["memory"], name)
    }
    const kept = of(PodDisruptionBudget).map(({ spec }) => spec!.selector!.matchLabels!["part"])
    const several = of(Deployment).filter(({ spec }) => spec!.replicas! > 1)
    assert.sameMembers(kept, several.map(({ spec }) => spec!.selector.matchLabels!["part"]))
  })
})
