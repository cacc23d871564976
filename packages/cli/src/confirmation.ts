// Asks for confirmation on a terminal.
import { createInterface } from 'node:readline/promises'
import type { Readable, Writable } from 'node:stream'

interface Terminal {
  readonly stdin: Readable
  readonly stderr: Writable
}

/** Whether someone can answer a question: standard input is a terminal. */
export function isInteractive(stdin: Readable): boolean {
  return 'isTTY' in stdin && stdin.isTTY === true
}

/** True for `y` and `yes`; false for anything else, the end of input and Ctrl-C. */
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
