// Asks the user at the terminal for confirmation.
import { createInterface } from 'node:readline/promises'
import type { Readable, Writable } from 'node:stream'

interface Terminal {
  readonly stdin: Readable
  readonly stderr: Writable
}

/** Returns true if standard input is a terminal, so that a user can answer a question. */
export function isInteractive(stdin: Readable): boolean {
  return 'isTTY' in stdin && stdin.isTTY === true
}

/** Resolves to true for `y` and `yes`, and to false for any other answer, the end of the input, and Ctrl-C. */
export async function confirm({ stdin, stderr }: Terminal, question: string): Promise<boolean> {
  const prompt = createInterface({ input: stdin, output: stderr, terminal: false })
  const closed = new Promise<string>((resolve) => prompt.once('close', () => resolve('')))
  try {
    const answer = await Promise.race([prompt.question(`${question} [y/N] `), closed])
    return /^y(es)?$/i.test(answer.trim())
  } finally {
    prompt.close()
  }
}
