/** The state of a project, in a badge and as the steps of its way. */
import type { JSX } from "preact"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { Badge, type Tone } from "./Badge.tsx"

export type Project = AnswerOf<"getProject">
type State = Project["state"]

const states: Readonly<Record<State, readonly [tone: Tone, words: string]>> = {
  registered: ["wait", "registered"],
  launch_proposed: ["wait", "launch proposed"],
  launched: ["good", "launched"],
  held: ["warn", "held"],
  withdrawn: ["off", "withdrawn"],
}

export const ProjectState = ({ of }: { readonly of: State }): JSX.Element => {
  const [tone, words] = states[of]
  return <Badge tone={tone}>{words}</Badge>
}

/** A reason for which a project is held, in words; an operator's own reason stays as it is. */
const waits: Readonly<Record<string, string>> = {
  rollout_held: "an operator holds its rollout",
  changed_since_approval: "it has changed since the launch was approved",
  institution_not_active: "its institution is not active",
  registration_unreviewed: "its registration waits for its review",
  redirect_uri_missing: "it has no redirect URI",
  connector_incomplete: "its connector is not complete",
  launch_url_unverified: "the launch URL lies under no verified domain",
  client_not_provisioned: "the identity provider has not made its client yet",
  client_disabled: "its client is disabled",
}

export const heldReason = (reason: string): string => waits[reason] ?? reason

/** The steps of a project's way. `held` and `withdrawn` are shown where the project is there only. */
const wayOf = (state: State): ReadonlyArray<readonly [State, string]> => [
  ["registered", "Registered"],
  ["launch_proposed", "Launch proposed"],
  ...(state === "held" ? [["held", "Held"] as const] : []),
  ...(state === "withdrawn" ? [] : [["launched", "Launched"] as const]),
  ...(state === "withdrawn" ? [["withdrawn", "Withdrawn"] as const] : []),
]

const next: Readonly<Record<State, string>> = {
  registered: "An owner proposes a launch.",
  launch_proposed: "An administrator decides on the launch.",
  held: "The launch follows by itself once nothing is missing, or an operator releases the rollout.",
  launched: "Nothing is left to do.",
  withdrawn: "Nothing leads back: its client, sessions and service grants have ended.",
}

export const ProjectSteps = ({ of }: { readonly of: Project }): JSX.Element => {
  const way = wayOf(of.state)
  const current = way.findIndex(([state]) => state === of.state)
  return (
    <ol class="steps" aria-label="The way of the project">
      {way.map(([state, words], n) => (
        <li key={state} class={n <= current ? "past" : ""} {...(n === current ? { "aria-current": "step" } : {})}>
          {n === current ? <strong>{words}</strong> : words}
          {n !== current ? null : (
            <span class="note">
              {" "}
              – now. {of.held_reason === null ? "" : `It waits: ${heldReason(of.held_reason)}. `}
              {next[state]}
            </span>
          )}
        </li>
      ))}
    </ol>
  )
}
