/** The form that makes recovery codes, which are shown once. */
import { useSignal } from "@preact/signals"
import type { JSX } from "preact"
import { useAction } from "../Action.ts"
import { useDraft } from "../Drafts.ts"
import { ShownOnce } from "../parts/Copy.tsx"
import { Form } from "../parts/Form.tsx"
import type { Opened } from "./ConfirmForm.tsx"
import { confirm } from "./Proof.ts"

/** `replaces`: codes of before end. */
export const RecoveryCodes = ({ close, done, replaces }: Opened & { readonly replaces: boolean }): JSX.Element => {
  const action = useAction()
  const codes = useSignal<ReadonlyArray<string> | null>(null)
  useDraft("codes", {})
  const write = () =>
    action.run(async () => {
      codes.value = (await confirm({ kind: "recovery_codes.generate" })).recovery_codes
      await done()
    })
  return codes.value !== null
    ? <ShownOnce what="the codes" secret={codes.value.join("\n")} close={close} />
    : (
      <Form action={action} close={close} submit={replaces ? "Replace the codes" : "Make the codes"} write={write}>
        <p>
          Ten codes, each of which is good once, for the day on which you have lost your other authenticators.
          {replaces ? " The codes that you have now end." : ""}
        </p>
      </Form>
    )
}
