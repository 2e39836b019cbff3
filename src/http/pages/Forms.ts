/** The two pages with buttons. A form without an action posts to its own address, so no page repeats its token. */
import type { DomainTransfer } from "../../../schemas/mail/Transfer.ts"
import type { DkimRecord } from "../../../services/transfers/DkimKeys.ts"
import type { Workspace } from "../../../services/accounts/Workspaces.ts"
import { type Html, html } from "../../../services/platform/mail/Html.ts"
import { masked, page, span, when } from "./TransferPage.ts"

const row = (name: string, value: Html) =>
  html`
    <div>
      <dt>${name}</dt>
      <dd>${value}</dd>
    </div>
  `
/** Isolates text that a user wrote, so that it can neither reverse the direction of our text nor pass for it. */
const said = (text: string) => html`<bdi>${text}</bdi>`

/** The record that publishes the new DKIM key. */
export const recordFacts = (record: DkimRecord | null): Html | null =>
  record === null ? null : html`
    <p>The transfer brings a new DKIM key. This TXT record in the domain's DNS publishes it:</p>
    <dl>
    ${row("Name", html`<code>${record.name}</code>`)}${row("Value", html`<code>${record.value}</code>`)}</dl>
  `

/** The facts of an offer: the domain, its owner, and the time to accept. */
const factsOf = (transfer: DomainTransfer, more: Html | null = null): Html =>
  html`
    <dl>
    ${row("Domain", html`<strong>${transfer.domain_name}</strong>`)}${row(
      "Offered by",
      said(transfer.source_label),
    )}${transfer.note === null || transfer.note === ""
      ? null
      : row("They write", html`<blockquote dir="auto">${transfer.note}</blockquote>`)}${row(
        "Can be accepted until",
        html`${when(transfer.expires_at)}`,
      )}${more}</dl>
  `

const window = "Until then its owner can stop the transfer with a link that we send to them. " +
  "The domain moves to your account after that."
const stoppable = html`<p>${window}</p>`

/** The offer as a visitor sees it who is not signed in yet. */
export const offerFacts = (transfer: DomainTransfer, safetyWindowMillis: number): Html =>
  html`${factsOf(transfer, row("Takes effect", html`${span(safetyWindowMillis)} after you accept`))}${stoppable}`

const choice = (
  [first, ...others]: ReadonlyArray<Workspace>,
): { readonly shown: Html | null; readonly field: Html | null } => {
  if (first === undefined) return { shown: null, field: null }
  if (others.length === 0) return { shown: row("Your workspace", said(first.name)), field: null }
  const options = [first, ...others].map(({ id, name }) =>
    html`
      <option value="${id}">${name}</option>
    `
  )
  return {
    shown: null,
    field: html`
      <label for="workspace">Your workspace that takes the domain</label>
      <select id="workspace" name="workspace">
      ${options}</select>
    `,
  }
}

const rotation = html`
  <label class="choice" for="rotate_dkim">
    <input type="checkbox" id="rotate_dkim" name="rotate_dkim" value="yes">
    <span>Sign the domain's mail with a new key (DKIM) once it is yours. The old one stops working then, so
      publish the new one in the domain's DNS before: we mail you its record when you accept.</span>
  </label>
`

const declining = html`<button class="plain" name="answer" value="decline">Decline the offer</button>`

export const acceptForm = ({ address, now, obstacle, safetyWindowMillis, transfer, workspaces }: {
  readonly transfer: DomainTransfer
  /** The address of the account that is signed in. */
  readonly address: string | null
  /** The caller's workspaces, the default one first. */
  readonly workspaces: ReadonlyArray<Workspace>
  /** Why the caller cannot accept at the moment, or null. */
  readonly obstacle: string | null
  readonly safetyWindowMillis: number
  readonly now: number
}) => {
  const { field, shown } = choice(workspaces)
  const effect = html`${span(safetyWindowMillis)} after you accept: ${when(now + safetyWindowMillis)} if you accept now`
  const account = row("Signed in as", said(masked(address)))
  const body = html`${factsOf(transfer, html`${account}${shown}${row("Takes effect", effect)}`)}
${stoppable}
${
    obstacle === null
      ? html`<form method="post">
${field}${rotation}<button name="answer" value="accept">Accept the domain</button>
${declining}
</form>
<p class="note">If you did not expect this, decline it or close the page: nothing happens unless you answer.</p>`
      : html`<p><strong>You cannot accept it at the moment.</strong> ${obstacle}</p>
<form method="post">${declining}</form>`
  }`
  return page({ title: `Accept ${transfer.domain_name}?`, body })
}

export const stopForm = (transfer: DomainTransfer, record: DkimRecord | null) =>
  page({
    title: `Stop the transfer of ${transfer.domain_name}?`,
    body: html`<dl>
${row("Domain", html`<strong>${transfer.domain_name}</strong>`)}${row("From", said(transfer.source_label))}${
      row("To", said(transfer.target_email))
    }${row("Takes effect", html`${when(transfer.cooloff_until ?? transfer.expires_at)}, unless you stop it`)}</dl>
${
      recordFacts(record)
    }<p>If you stop it, the domain stays with its owner. That cannot be undone; the domain can be offered again.</p>
<form method="post"><button class="stop">Stop this transfer</button></form>
<p class="note">If all is as you want it, close the page: the transfer goes on.</p>`,
  })
