/** The proof that an entry is in the log, as a text that is verified without the log (C2SP tlog-proof). */

/** The proof of the entry at `index`, in the tree of the checkpoint. */
export const inclusionNote = (
  { checkpoint, index, proof }: {
    readonly index: number
    readonly proof: ReadonlyArray<Uint8Array>
    /** Signed, with the lines of its witnesses. */
    readonly checkpoint: string
  },
): string =>
  [
    "c2sp.org/tlog-proof@v1",
    `index ${index}`,
    ...proof.map((hash) => Buffer.from(hash).toString("base64")),
    "",
    checkpoint,
  ].join("\n")
