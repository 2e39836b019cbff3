/** The pages with a button, of invitations and of links, and those that say why there is none any more. */
import type { InvitationPreview } from "../../../services/decisions/Enrollments/InvitationPreview.ts"
import type { LinkPreview } from "../../../services/links/Links/LinkPreview.ts"
import { type Html, html } from "../../../services/platform/mail/Html.ts"
import { message, ownPage } from "./OwnPage.ts"
import { when } from "./TransferPage.ts"

const row = (name: string, value: Html) =>
  html`
    <div>
      <dt>${name}</dt>
      <dd>${value}</dd>
    </div>
  `

export const invitationForm = (institution: string, expiresAt: Date | null) =>
  ownPage({
    title: "You are invited",
    body: html`
      <p><bdi>${institution}</bdi> would like you to become one of its members.</p>
      <dl>${row("Institution", html`<bdi>${institution}</bdi>`)}${expiresAt === null
        ? null
        : row("Can be accepted until", html`${when(expiresAt.getTime())}`)}</dl>
      <form method="post"><button>Accept the invitation</button></form>
      <p
        class="note">If the invitation was sent to another address than yours, an administrator is asked first. If you did not
      expect it, close the page: nothing happens.</p>
    `,
  })

/** The page of an invitation that can no longer be accepted. */
export const invitationEnded = ({ institution, state }: InvitationPreview, status: number) => {
  const title = state === "accepted" ? "This invitation was accepted" : "This invitation has ended"
  const text = state === "accepted"
    ? `The invitation of ${institution} was accepted already.`
    : `The invitation of ${institution} can no longer be accepted: ask for another one.`
  return message(title, text, status)
}

export const objectionForm = ({ createdAt, effectiveAt, reason }: LinkPreview) =>
  ownPage({
    title: "Object to a link?",
    body:
      html`<p>A signed-in person showed that they can sign in as you, too, and asks for both identities to become one.</p>
<dl>${row("Asked on", html`${when(createdAt.getTime())}`)}${
        row("They write", html`<blockquote dir="auto">${reason}</blockquote>`)
      }${
        row(
          "Takes effect",
          effectiveAt === null ? html`after an operator has approved it` : html`${when(effectiveAt.getTime())}`,
        )
      }</dl>
<form method="post"><button class="stop">Object: that was not me</button></form>
<p class="note">If you asked for it yourself, close the page: the request goes on.</p>`,
  })

/** The state of a link that can no longer be objected to. */
export const linkEnded = ({ state }: LinkPreview, status: number) =>
  state === "linked"
    ? message("These identities are linked", "The link has taken effect: ask an operator if it was not you.", status)
    : message("This request has ended", "The identities stay apart: there is nothing left to object to.", status)
