/**
 * Warns of settings that are allowed but probably not meant. Each warning is one line, logged at start and shown by
 * `doctor`; values are never repeated.
 */
import type { AppConfig } from "../AppConfig.ts"
import { variables } from "./Variables.ts"

/** The first ephemeral port by default: systems use ports from here on for outgoing connections. */
const ephemeral = 32_768

const ports = [["port", "PORT"], ["clusterPort", "CLUSTER_PORT"], ["metricsPort", "METRICS_PORT"]] as const

const portWarnings = (config: AppConfig) =>
  ports.flatMap(([key, name]) => {
    const port = config[key]
    return port === null || port < ephemeral ? [] : [
      `${name}: ${port} is a port that an outgoing connection of any program may take, and a later start then fails: ` +
      `choose one below ${ephemeral}`,
    ]
  })

/** Why no caller can sign in, or null. */
export const signInWarning = (config: AppConfig): string | null => {
  const issuers = (["mailIssuers", "managementIssuers", "lifecycleIssuers"] as const)
    .filter((key) => config[key].length > 0)
  return config.demo || issuers.length > 0
    ? null
    : "no caller can sign in: DEMO is off and no issuer is configured; set MAIL_ISSUERS for mail accounts, " +
      "MANAGEMENT_ISSUERS for people, LIFECYCLE_ISSUERS for products"
}

const names = Object.values(variables).map(({ name }) => name)

/**
 * Prefixes that no common program uses. `IDENTITY_` is Azure's, `MAIL_` and `CLUSTER_` are used by many programs:
 * variables with these prefixes are reported only when they nearly match one of ours.
 */
const ownPrefixes = ["BAILIWICK_", "WEBHOOKS_", "TRANSFER_", "MANAGEMENT_", "DOMAIN_TRANSFERS_"]

/** Kubernetes sets these for a service of any name, such as `bailiwick` or `webhooks`. */
const ofServices = /_(?:SERVICE_(?:HOST|PORT)(?:_[A-Z0-9_]+)?|PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_(?:ADDR|PORT|PROTO))?)?)$/

/** Read by commands, by examples/product and by programs like it, in whose shell this one may be started. */
const ofCallers = new Set(["BAILIWICK_URL", "BAILIWICK_KEY"])

/** The edit distance: letters added, left out, exchanged or swapped with their neighbour. */
const distance = (a: string, b: string): number => {
  let [before, last] = [[] as Array<number>, Array.from({ length: b.length + 1 }, (_, j) => j)]
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? before[j - 2]! + 1 : Infinity
      row.push(Math.min(row[j - 1]! + 1, last[j]! + 1, last[j - 1]! + same, swapped))
    }
    before = last
    last = row
  }
  return last[b.length]!
}

/**
 * How many wrong letters still count as a misspelling. Short names are one letter away from many others (`HOSTS`,
 * `PORTS`, `ROLE`); long names do not match by chance.
 */
const mistakes = (name: string) => name.length < 6 ? -1 : name.length < 12 ? 1 : 2

const longest = 64

const misspelt = (given: string): string | null => {
  if (names.includes(given) || given.length > longest || ofServices.test(given) || ofCallers.has(given)) return null
  const upper = given.toUpperCase()
  const near = names.map((name) => ({ name, by: distance(upper, name), most: mistakes(name) }))
    .filter(({ by, most }) => by <= most)
    .sort((a, b) => a.by - b.by)[0]
  if (near !== undefined) return `${given} is not a variable of bailiwick; did you mean ${near.name}?`
  return ownPrefixes.some((prefix) => given.startsWith(prefix)) ? `${given} is not a variable of bailiwick` : null
}

/** All warnings about this configuration and the names in the environment. */
export const warningsOf = (config: AppConfig, environment: ReadonlyArray<string>): ReadonlyArray<string> => {
  const signIn = signInWarning(config)
  return [
    ...(signIn === null || !config.roles.has("api") ? [] : [signIn]),
    ...portWarnings(config),
    ...environment.flatMap((name) => misspelt(name) ?? []),
  ]
}
