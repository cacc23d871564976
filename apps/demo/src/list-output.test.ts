// Tests that the list can be written to a reader that does not read all of it.
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

test('the program goes on if its reader closes the pipe', async () => {
  const program = `
    import { writeLines } from ${JSON.stringify(join(import.meta.dirname, 'list-output.ts'))}
    process.stdout.on('error', () => {})
    const lines = Array.from({ length: 20_000 }, (_, i) => 'x'.repeat(200) + i + '\\n')
    process.stderr.write(String(await writeLines(process.stdout, lines)))`
  const script = '"$0" --input-type=module -e "$1" | head -n 1; exit $PIPESTATUS'
  const { stdout, stderr } = await promisify(execFile)('bash', ['-c', script, process.execPath, program])
  expect(stdout).toBe(`${'x'.repeat(200)}0\n`)
  expect(stderr).toBe('false')
})
