// A part of a benchmark that fails when it starts or when it is asked.
import { partOptions, reportReady } from './part.ts'

const { failsAt } = partOptions<{ readonly failsAt: 'start' | 'question' }>()
if (failsAt === 'start') throw new Error('failed at the start')
reportReady(true, {
  begin() {
    throw new Error('failed at the question')
  },
})
