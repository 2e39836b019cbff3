/** The health of a webhook in words, and the field of its description. */
import type { JSX } from "preact"
import type { Action } from "../Action.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { Badge, type Tone } from "./Badge.tsx"
import { TextField } from "./Form.tsx"
import { When } from "./When.tsx"

type Webhook = AnswerOf<"listWebhooks">[number]

const words: Readonly<Record<Webhook["health"], readonly [tone: Tone, words: string]>> = {
  unused: ["wait", "not used yet"],
  healthy: ["good", "healthy"],
  failing: ["bad", "failing"],
  paused: ["off", "paused"],
}

const pausedBy: Readonly<Record<NonNullable<Webhook["paused_by"]>, string>> = {
  owner: "by this account",
  operator: "by an operator",
  system: "since it failed for days,",
}

export const Health = ({ of }: { readonly of: Webhook }): JSX.Element => {
  const { failing_since, health, paused_at, paused_by } = of
  const [tone, text] = words[health]
  return (
    <>
      <Badge tone={tone}>{text}</Badge>
      {paused_by === null ? null : (
        <div class="note">
          {pausedBy[paused_by]}
          {paused_at === null ? null : (
            <>
              {" "}
              <When at={paused_at} />
            </>
          )}
        </div>
      )}
      {failing_since === null || health === "paused" ? null : (
        <div class="note">
          since <When at={failing_since} />
        </div>
      )}
    </>
  )
}

export const DescriptionField = ({ action, onInput, value }: {
  readonly action: Action
  readonly value: string
  readonly onInput: (value: string) => void
}): JSX.Element => (
  <TextField
    action={action}
    label="Description"
    name="description"
    required={false}
    hint="What it is for, in words of yours. It may be left empty."
    value={value}
    onInput={onInput}
  />
)
