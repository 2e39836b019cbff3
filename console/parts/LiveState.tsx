/** Whether the page's stream is open; a cut one leaves the page as it was. */
import type { JSX } from "preact"
import type { Cut } from "../LiveStream.ts"
import { When } from "./When.tsx"

export const LiveState = ({ cut }: { readonly cut: Cut }): JSX.Element => (
  <div role="status">
    {cut.value == null
      ? <p class="note">{cut.value === null ? "Live: this page follows what happens." : "Connecting…"}</p>
      : (
        <p class="banner">
          The live stream is cut. This page is as of <When at={cut.value} exact />, and goes on by itself.
        </p>
      )}
  </div>
)
