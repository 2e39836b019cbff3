/** The person's setting for mails about the ends of its requests and about reviews that wait for its signature. */
import type { JSX } from "preact"
import { useAction } from "../Action.ts"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { announce } from "../parts/Announce.tsx"
import { Failure } from "../parts/Failure.tsx"
import { SelectField } from "../parts/Form.tsx"
import { useResource } from "../Resource.ts"

type Delivery = AnswerOf<"noticeSettings">["delivery"]

const choices: ReadonlyArray<readonly [Delivery, string]> = [
  ["digest", "Gathered, one mail an hour at most"],
  ["immediately", "Each by a mail of its own"],
  ["off", "No mail"],
]

export const Notices = ({ mailed }: {
  /** Whether the person has a verified address. */
  readonly mailed: boolean
}): JSX.Element => {
  const settings = useResource("notice settings", (signal) => ask("noticeSettings", {}, { signal }))
  const action = useAction()
  const choose = async (value: string) => {
    const choice = choices.find(([one]) => one === value)
    if (choice === undefined) return
    if (await action.run(() => ask("setNoticeSettings", { payload: { delivery: choice[0] } }))) {
      announce("Your choice is kept.")
    }
    await settings.reload()
  }
  return (
    <section aria-labelledby="notices">
      <h2 id="notices">Mails to you</h2>
      <p class="note">Of what became of your requests, and of what waits for your signature.</p>
      {mailed ? null : <p>You have no verified mail address, so nothing is mailed to you.</p>}
      <Failure of={settings.failure} retry={settings.reload} />
      <Failure of={action.failure} />
      {settings.value.value === undefined ? null : (
        <SelectField
          label="Mails"
          value={settings.value.value.delivery}
          options={choices}
          onChange={(value) => void choose(value)}
        />
      )}
    </section>
  )
}
