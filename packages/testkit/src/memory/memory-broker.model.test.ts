import { brokerModel } from '@bullpen/testing'
import { openMemory } from './memory-backend.fixture.ts'

brokerModel('the memory broker', openMemory, { time: 'fake', seeds: { small: 200, full: 10_000 }, atOnce: 1 })
