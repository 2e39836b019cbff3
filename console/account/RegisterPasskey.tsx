/** The form that registers a passkey or a security key with the browser. */
import { browserSupportsWebAuthn, startRegistration, WebAuthnError } from "@simplewebauthn/browser"
import type { JSX } from "preact"
import { useAction } from "../Action.ts"
import { Refused } from "../contract/Ask.ts"
import { useDraft } from "../Drafts.ts"
import { announce } from "../parts/Announce.tsx"
import { Form } from "../parts/Form.tsx"
import { session } from "../Visitor.ts"
import type { Opened } from "./ConfirmForm.tsx"
import { LabelField, longestLabel } from "./LabelField.tsx"
import { complete, labelOf, start, type Started } from "./Proof.ts"

type Options = Parameters<typeof startRegistration>[0]["optionsJSON"]
type Made = Awaited<ReturnType<typeof startRegistration>>

/** Why this page cannot register a passkey; null: it can. */
export const withoutPasskeys = (): string | null => {
  const domain = session.value?.features.passkey_domain ?? ""
  const { hostname } = location
  if (hostname !== domain && !hostname.endsWith(`.${domain}`)) {
    return `Passkeys belong to ${domain}, and browsers refuse them on a page of ${hostname}.`
  }
  return browserSupportsWebAuthn() ? null : "This browser has no passkeys."
}

/** The browser's refusals, by their names. */
const words: Readonly<Record<string, string>> = {
  InvalidStateError: "This device or key is registered already.",
  NotAllowedError: "The browser made no passkey: it was given up, or took too long. Press the button again.",
  SecurityError: "The browser refuses passkeys on this page's address.",
  ConstraintError: "This device cannot ask for its owner: set a PIN, a fingerprint or a face first.",
}

const refusal = (cause: unknown): Refused => {
  const by = cause instanceof WebAuthnError && cause.cause instanceof Error ? cause.cause : cause
  const name = by instanceof Error ? by.name : ""
  return new Refused("passkey_failed", 0, { detail: words[name] ?? `The browser made no passkey: ${name}.` })
}

const made = async ({ challenge }: Started): Promise<Made> => {
  if (challenge.type !== "webauthn.create") throw new Refused("failed", 0, {})
  try {
    // The contract passes the options of the standard through, without their type.
    return await startRegistration({ optionsJSON: challenge.public_key as unknown as Options })
  } catch (cause) {
    throw refusal(cause)
  }
}

/** The members that the API asks for; a browser may add others. */
const credentialOf = ({ authenticatorAttachment, clientExtensionResults, id, rawId, response, type }: Made) => ({
  id,
  rawId,
  type,
  response: {
    clientDataJSON: response.clientDataJSON,
    attestationObject: response.attestationObject,
    ...(response.transports === undefined ? {} : { transports: response.transports }),
  },
  authenticatorAttachment: authenticatorAttachment ?? null,
  clientExtensionResults: { ...clientExtensionResults },
})

export const RegisterPasskey = ({ close, done }: Opened): JSX.Element => {
  const action = useAction()
  const draft = useDraft("passkey", { label: "" })
  const { label } = draft.value.value
  const write = async () => {
    const registered = await action.run(async () => {
      const started = await start({ kind: "passkey.register", label: labelOf(label) })
      await complete(started.intent_id, { type: "webauthn.create", credential: credentialOf(await made(started)) })
    })
    if (!registered) return
    announce("The passkey is registered.")
    close()
    await done()
  }
  return (
    <Form
      action={action}
      close={close}
      submit="Register it"
      ready={label.trim().length <= longestLabel}
      write={write}
    >
      <p>The browser asks for the device or the security key, and for its owner: a fingerprint, a face or a PIN.</p>
      <LabelField action={action} value={label} onInput={(label) => draft.set({ label })} />
    </Form>
  )
}
