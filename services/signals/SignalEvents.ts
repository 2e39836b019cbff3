/** The security events that change something here, and what each of them may change. */

/** What an event does. `ignore`: it is acknowledged and recorded, and changes nothing. */
export type SignalEffect = "end_sessions" | "hold" | "release" | "ignore"

interface Signal {
  /** The default first. */
  readonly effects: ReadonlyArray<SignalEffect>
  /** Event types of the Continuous Access Evaluation Profile 1.0 and of RISC 1.0. */
  readonly types: ReadonlyArray<string>
}

const caep = "https://schemas.openid.net/secevent/caep/event-type/"
const risc = "https://schemas.openid.net/secevent/risc/event-type/"

/** By the name that the configuration uses. */
export const signals = {
  "session-revoked": {
    effects: ["end_sessions", "ignore"],
    types: [`${caep}session-revoked`, `${risc}sessions-revoked`],
  },
  "credential-change": {
    effects: ["end_sessions", "ignore"],
    types: [
      `${caep}credential-change`,
      `${risc}credential-compromise`,
      `${risc}account-credential-change-required`,
    ],
  },
  "assurance-level-change": { effects: ["end_sessions", "ignore"], types: [`${caep}assurance-level-change`] },
  "account-disabled": { effects: ["hold", "end_sessions", "ignore"], types: [`${risc}account-disabled`] },
  "account-enabled": { effects: ["release", "ignore"], types: [`${risc}account-enabled`] },
  "account-purged": { effects: ["hold", "end_sessions", "ignore"], types: [`${risc}account-purged`] },
} satisfies Record<string, Signal>

export type SignalName = keyof typeof signals
export const signalNames = Object.keys(signals) as ReadonlyArray<SignalName>

const byType: ReadonlyMap<string, SignalName> = new Map(
  signalNames.flatMap((name) => (signals as Record<SignalName, Signal>)[name].types.map((type) => [type, name])),
)

/** The signal of an event type; undefined for any other type. */
export const signalOf = (type: string): SignalName | undefined => byType.get(type)

const streamTypes = new Set(
  ["verification", "stream-updated"].map((name) => `https://schemas.openid.net/secevent/ssf/event-type/${name}`),
)

/** Whether an event is about the stream and not about a person. */
export const isStreamEvent = (type: string): boolean => streamTypes.has(type)
