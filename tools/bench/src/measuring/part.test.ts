// What a benchmark reports if one of its processes ends.
import { fileURLToPath } from 'node:url'
import { expect, it, vi } from 'vitest'
import { startPart } from './part.ts'

const BROKEN = fileURLToPath(import.meta.resolve('./broken-part.fixture.ts'))

it('a part that ends is reported with its exit code and its error', async () => {
  const written = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
  try {
    await expect(startPart(BROKEN, { failsAt: 'start' })).rejects.toThrow(
      /^broken-part\.fixture\.ts ended before the benchmark did, with exit code 1\n[\s\S]*failed at the start/,
    )
    const part = await startPart(BROKEN, { failsAt: 'question' })
    const failure = await part.ask('begin').catch((error: Error) => error)
    expect(String(failure)).toMatch(/with exit code 1\n[\s\S]*failed at the question/)
    await expect(part.ask('end')).rejects.toThrow('failed at the question')
    expect(written).toHaveBeenCalled()
  } finally {
    written.mockRestore()
  }
})
