/** The characters of HTTP's grammar (RFC 9110, section 5; RFC 9112, section 7.1), by byte. */

const bytes = (of: (byte: number, character: string) => number): Uint8Array =>
  Uint8Array.from({ length: 256 }, (_, byte) => of(byte, String.fromCharCode(byte)))

/** A byte of a token, in lower case; 0 for a byte that may not be in a token (section 5.6.2). */
export const token = bytes((_, character) =>
  /^[!#$%&'*+.^_`|~0-9A-Za-z-]$/.test(character) ? character.toLowerCase().charCodeAt(0) : 0
)

/** 1 for a byte of a field's value, a reason or an escape: blanks, visible characters and obs-text (section 5.5). */
export const fieldText = bytes((byte) => byte === 9 || (byte >= 32 && byte !== 127) ? 1 : 0)

/** 1 for a byte that needs no escape in a quoted string (section 5.6.4). */
export const quotedText = bytes((byte, character) =>
  fieldText[byte] === 1 && character !== `"` && character !== "\\" ? 1 : 0
)

/** The value of a hexadecimal digit; 255 for any other byte. */
export const hexDigit = bytes((_, character) => /^[0-9A-Fa-f]$/.test(character) ? parseInt(character, 16) : 255)
