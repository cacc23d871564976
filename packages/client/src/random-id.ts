// Generates random ids. Unlike crypto.randomUUID, crypto.getRandomValues is also available on pages that were not loaded over
// https.

/** Returns 32 hexadecimal digits, which are 128 random bits. */
export function randomId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
