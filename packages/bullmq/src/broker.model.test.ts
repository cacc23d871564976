import { brokerModel } from '@bullpen/testing'
import { openBullmq } from './backend.fixture.ts'

brokerModel('BullMQ', openBullmq, { time: 'real', seeds: { small: 60, full: 1_000 }, atOnce: 10 })
