/*M!999999\- enable the sandbox mode */ 

/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;
/*!40101 SET @OLD_CHARACTER_SET_RESULTS=@@CHARACTER_SET_RESULTS */;
/*!40101 SET @OLD_COLLATION_CONNECTION=@@COLLATION_CONNECTION */;
/*!40101 SET NAMES utf8mb4 */;
/*!40103 SET @OLD_TIME_ZONE=@@TIME_ZONE */;
/*!40103 SET TIME_ZONE='+00:00' */;
/*!40014 SET @OLD_UNIQUE_CHECKS=@@UNIQUE_CHECKS, UNIQUE_CHECKS=0 */;
/*!40014 SET @OLD_FOREIGN_KEY_CHECKS=@@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS=0 */;
/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */;
/*!40111 SET @OLD_SQL_NOTES=@@SQL_NOTES, SQL_NOTES=0 */;

CREATE DATABASE /*!32312 IF NOT EXISTS*/ `ml` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci */;

USE `ml`;
DROP TABLE IF EXISTS `orders`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `orders` (
  `id` bigint(20) NOT NULL,
  `name` varchar(40) DEFAULT NULL,
  `n` int(11) DEFAULT NULL,
  `c` int(11) DEFAULT 3,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `orders` WRITE;
/*!40000 ALTER TABLE `orders` DISABLE KEYS */;
INSERT INTO `orders` VALUES
(1,'row',1,3),
(2,'row',2,3),
(3,'row',3,3),
(4,'row',4,3),
(5,'row',5,3),
(6,'row',6,3),
(7,'row',7,3),
(8,'row',8,3),
(9,'row',9,3),
(10,'row',10,3),
(11,'row',11,3),
(12,'row',12,3),
(13,'row',13,3),
(14,'row',14,3),
(15,'row',15,3),
(16,'row',16,3),
(17,'row',17,3),
(18,'row',18,3),
(19,'row',19,3),
(20,'row',20,3),
(1000001,'row',1,3),
(1000002,'row',2,3),
(1000004,'row',4,3),
(1000005,'row',5,3),
(1000006,'row',6,3),
(1000007,'row',7,3),
(1000008,'row',8,3),
(1000009,'row',9,3),
(1000010,'row',10,3),
(1000011,'row',11,3),
(1000012,'row',12,3),
(1000013,'row',13,3),
(1000014,'row',14,3),
(1000015,'row',15,3),
(1000016,'row',16,3),
(1000017,'row',17,3),
(1000018,'row',18,3),
(1000019,'row',19,3),
(1000020,'row',20,3),
(1000100,'flows',1,1),
(2000001,'row',1,3),
(2000002,'row',2,3),
(2000003,'row',3,3),
(2000004,'row',4,3),
(2000005,'row',5,3),
(2000006,'row',6,3),
(2000007,'row',7,3),
(2000008,'row',8,3),
(2000009,'row',9,3),
(2000010,'row',10,3),
(2000011,'row',11,3),
(2000012,'row',12,3),
(2000013,'row',13,3),
(2000014,'row',14,3),
(2000015,'row',15,3),
(2000016,'row',16,3),
(2000017,'row',17,3),
(2000018,'row',18,3),
(2000019,'row',19,3),
(2000020,'row',20,3),
(2000100,'flows',1,1);
/*!40000 ALTER TABLE `orders` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `users`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `users` (
  `id` bigint(20) NOT NULL,
  `name` varchar(40) DEFAULT NULL,
  `n` int(11) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `users` WRITE;
/*!40000 ALTER TABLE `users` DISABLE KEYS */;
INSERT INTO `users` VALUES
(1,'row',1),
(2,'row',2),
(3,'row',3),
(4,'row',4),
(5,'row',5),
(6,'row',6),
(7,'row',7),
(8,'row',8),
(9,'row',9),
(10,'row',10),
(11,'row',11),
(12,'row',12),
(13,'row',13),
(14,'row',14),
(15,'row',15),
(16,'row',16),
(17,'row',17),
(18,'row',18),
(19,'row',19),
(20,'row',20),
(2000001,'row',1),
(2000002,'row',2),
(2000003,'row',3),
(2000004,'row',4),
(2000005,'row',5),
(2000006,'row',6),
(2000007,'row',7),
(2000008,'row',8),
(2000009,'row',9),
(2000010,'row',10),
(2000011,'row',11),
(2000012,'row',12),
(2000013,'row',13),
(2000014,'row',14),
(2000015,'row',15),
(2000016,'row',16),
(2000017,'row',17),
(2000018,'row',18),
(2000019,'row',19),
(2000020,'row',20);
/*!40000 ALTER TABLE `users` ENABLE KEYS */;
UNLOCK TABLES;

CREATE DATABASE /*!32312 IF NOT EXISTS*/ `mu` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci */;

USE `mu`;
DROP TABLE IF EXISTS `orders`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `orders` (
  `id` bigint(20) NOT NULL,
  `name` varchar(40) DEFAULT NULL,
  `n` bigint(20) DEFAULT NULL,
  `c` int(11) DEFAULT 3,
  `e` int(11) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `orders` WRITE;
/*!40000 ALTER TABLE `orders` DISABLE KEYS */;
INSERT INTO `orders` VALUES
(1,'x',1,2,5),
(2,'x',1,3,NULL),
(97,'x',1,3,NULL),
(98,'x',1,3,NULL),
(297,'x',1,2,NULL),
(298,'x',1,2,NULL);
/*!40000 ALTER TABLE `orders` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `users`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `users` (
  `id` bigint(20) NOT NULL,
  `name` varchar(40) DEFAULT NULL,
  `n` int(11) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `users` WRITE;
/*!40000 ALTER TABLE `users` DISABLE KEYS */;
/*!40000 ALTER TABLE `users` ENABLE KEYS */;
UNLOCK TABLES;

CREATE DATABASE /*!32312 IF NOT EXISTS*/ `mc` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci */;

USE `mc`;
DROP TABLE IF EXISTS `orders`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `orders` (
  `id` bigint(20) NOT NULL,
  `name` varchar(40) DEFAULT NULL,
  `n` int(11) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `orders` WRITE;
/*!40000 ALTER TABLE `orders` DISABLE KEYS */;
INSERT INTO `orders` VALUES
(1,'row',1),
(2,'row',2),
(3,'row',3),
(4,'row',4),
(5,'row',5),
(6,'row',6),
(7,'row',7),
(8,'row',8),
(9,'row',9),
(10,'row',10),
(11,'row',11),
(12,'row',12),
(13,'row',13),
(14,'row',14),
(15,'row',15),
(16,'row',16),
(17,'row',17),
(18,'row',18),
(19,'row',19),
(20,'row',20),
(21,'row',21),
(22,'row',22),
(23,'row',23),
(24,'row',24),
(25,'row',25),
(26,'row',26),
(27,'row',27),
(28,'row',28),
(29,'row',29),
(30,'row',30),
(31,'row',31),
(32,'row',32),
(33,'row',33),
(34,'row',34),
(35,'row',35),
(36,'row',36),
(37,'row',37),
(38,'row',38),
(39,'row',39),
(40,'row',40),
(41,'row',41),
(42,'row',42),
(43,'row',43),
(44,'row',44),
(45,'row',45),
(46,'row',46),
(47,'row',47),
(48,'row',48),
(49,'row',49),
(50,'row',50),
(2000001,'row',1),
(2000002,'row',2),
(2000003,'row',3),
(2000004,'row',4),
(2000005,'row',5),
(2000006,'row',6),
(2000007,'row',7),
(2000008,'row',8),
(2000009,'row',9),
(2000010,'row',10),
(2000011,'row',11),
(2000012,'row',12),
(2000013,'row',13),
(2000014,'row',14),
(2000015,'row',15),
(2000016,'row',16),
(2000017,'row',17),
(2000018,'row',18),
(2000019,'row',19),
(2000020,'row',20),
(2000021,'row',21),
(2000022,'row',22),
(2000023,'row',23),
(2000024,'row',24),
(2000025,'row',25),
(2000026,'row',26),
(2000027,'row',27),
(2000028,'row',28),
(2000029,'row',29),
(2000030,'row',30),
(2000031,'row',31),
(2000032,'row',32),
(2000033,'row',33),
(2000034,'row',34),
(2000035,'row',35),
(2000036,'row',36),
(2000037,'row',37),
(2000038,'row',38),
(2000039,'row',39),
(2000040,'row',40),
(2000041,'row',41),
(2000042,'row',42),
(2000043,'row',43),
(2000044,'row',44),
(2000045,'row',45),
(2000046,'row',46),
(2000047,'row',47),
(2000048,'row',48),
(2000049,'row',49),
(2000050,'row',50),
(2000051,'row',51),
(2000052,'row',52),
(2000053,'row',53),
(2000054,'row',54),
(2000055,'row',55),
(2000056,'row',56),
(2000057,'row',57),
(2000058,'row',58),
(2000059,'row',59),
(2000060,'row',60),
(2000061,'row',61),
(2000062,'row',62),
(2000063,'row',63),
(2000064,'row',64),
(2000065,'row',65),
(2000066,'row',66),
(2000067,'row',67),
(2000068,'row',68),
(2000069,'row',69),
(2000070,'row',70),
(2000071,'row',71),
(2000072,'row',72),
(2000073,'row',73),
(2000074,'row',74),
(2000075,'row',75),
(2000076,'row',76),
(2000077,'row',77),
(2000078,'row',78),
(2000079,'row',79),
(2000080,'row',80),
(2000081,'row',81),
(2000082,'row',82),
(2000083,'row',83),
(2000084,'row',84),
(2000085,'row',85),
(2000086,'row',86),
(2000087,'row',87),
(2000088,'row',88),
(2000089,'row',89),
(2000090,'row',90),
(2000091,'row',91),
(2000092,'row',92),
(2000093,'row',93),
(2000094,'row',94),
(2000095,'row',95),
(2000096,'row',96),
(2000097,'row',97),
(2000098,'row',98),
(2000099,'row',99),
(2000100,'row',100),
(2000101,'row',101),
(2000102,'row',102),
(2000103,'row',103),
(2000104,'row',104),
(2000105,'row',105),
(2000106,'row',106),
(2000107,'row',107),
(2000108,'row',108),
(2000109,'row',109),
(2000110,'row',110),
(2000111,'row',111),
(2000112,'row',112),
(2000113,'row',113),
(2000114,'row',114),
(2000115,'row',115),
(2000116,'row',116),
(2000117,'row',117),
(2000118,'row',118),
(2000119,'row',119),
(2000120,'row',120),
(2000121,'row',121),
(2000122,'row',122),
(2000123,'row',123),
(2000124,'row',124),
(2000125,'row',125),
(2000126,'row',126),
(2000127,'row',127),
(2000128,'row',128),
(2000129,'row',129),
(2000130,'row',130),
(2000131,'row',131),
(2000132,'row',132),
(2000133,'row',133),
(2000134,'row',134),
(2000135,'row',135),
(2000136,'row',136),
(2000137,'row',137),
(2000138,'row',138),
(2000139,'row',139),
(2000140,'row',140),
(2000141,'row',141),
(2000142,'row',142),
(2000143,'row',143),
(2000144,'row',144),
(2000145,'row',145),
(2000146,'row',146),
(2000147,'row',147),
(2000148,'row',148),
(2000149,'row',149),
(2000150,'row',150),
(2000151,'row',151),
(2000152,'row',152),
(2000153,'row',153),
(2000154,'row',154),
(2000155,'row',155),
(2000156,'row',156),
(2000157,'row',157),
(2000158,'row',158),
(2000159,'row',159),
(2000160,'row',160),
(2000161,'row',161),
(2000162,'row',162),
(2000163,'row',163),
(2000164,'row',164),
(2000165,'row',165),
(2000166,'row',166),
(2000167,'row',167),
(2000168,'row',168),
(2000169,'row',169),
(2000170,'row',170),
(2000171,'row',171),
(2000172,'row',172),
(2000173,'row',173),
(2000174,'row',174),
(2000175,'row',175),
(2000176,'row',176),
(2000177,'row',177),
(2000178,'row',178),
(2000179,'row',179),
(2000180,'row',180),
(2000181,'row',181),
(2000182,'row',182),
(2000183,'row',183),
(2000184,'row',184),
(2000185,'row',185),
(2000186,'row',186),
(2000187,'row',187),
(2000188,'row',188),
(2000189,'row',189),
(2000190,'row',190),
(2000191,'row',191),
(2000192,'row',192),
(2000193,'row',193),
(2000194,'row',194),
(2000195,'row',195),
(2000196,'row',196),
(2000197,'row',197),
(2000198,'row',198),
(2000199,'row',199),
(2000200,'row',200);
/*!40000 ALTER TABLE `orders` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `users`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `users` (
  `id` bigint(20) NOT NULL,
  `name` varchar(40) DEFAULT NULL,
  `n` int(11) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `users` WRITE;
/*!40000 ALTER TABLE `users` DISABLE KEYS */;
/*!40000 ALTER TABLE `users` ENABLE KEYS */;
UNLOCK TABLES;

CREATE DATABASE /*!32312 IF NOT EXISTS*/ `dm_meta` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci */;

USE `dm_meta`;
DROP TABLE IF EXISTS `copying_checkpoint`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `copying_checkpoint` (
  `source` varchar(64) NOT NULL,
  `binlog_file` varchar(255) NOT NULL,
  `binlog_offset` bigint(20) unsigned NOT NULL,
  `gtid` longtext NOT NULL,
  `server_id` bigint(20) unsigned NOT NULL,
  `server_uuid` varchar(36) NOT NULL,
  `folds_names` tinyint(1) DEFAULT NULL,
  `anchor_file` varchar(255) DEFAULT NULL,
  `anchor_offset` bigint(20) unsigned DEFAULT NULL,
  `anchor_created` bigint(20) unsigned DEFAULT NULL,
  `anchor_fingerprint` bigint(20) unsigned DEFAULT NULL,
  `prepared` longtext NOT NULL,
  `key_buckets` smallint(6) NOT NULL,
  `shard_mode` varchar(16) NOT NULL,
  `open_items` int(11) NOT NULL,
  `applied` varchar(280) NOT NULL,
  `begin_again` tinyint(4) NOT NULL DEFAULT 0,
  `saved_at` timestamp NOT NULL DEFAULT current_timestamp() ON UPDATE current_timestamp(),
  PRIMARY KEY (`source`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `copying_checkpoint` WRITE;
/*!40000 ALTER TABLE `copying_checkpoint` DISABLE KEYS */;
INSERT INTO `copying_checkpoint` VALUES
('a','binlog.000001',70371,'0-4101-34',4101,'',0,'binlog.000001',4,1796069867,3258504771,'',4,'pessimistic',0,'',0,'2026-11-30 20:18:11'),
('b','binlog.000001',45470,'0-4102-18',4102,'',0,'binlog.000001',4,1796069867,3834110522,'',4,'pessimistic',0,'',0,'2026-11-30 20:18:11');
/*!40000 ALTER TABLE `copying_checkpoint` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `copying_chunk`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `copying_chunk` (
  `source` varchar(64) NOT NULL,
  `schema_name` varchar(64) NOT NULL,
  `table_name` varchar(64) NOT NULL,
  `number` int(11) NOT NULL,
  `lower_key` longtext DEFAULT NULL,
  `upper_key` longtext DEFAULT NULL,
  `state` tinyint(4) NOT NULL,
  `row_count` bigint(20) NOT NULL,
  `byte_count` bigint(20) NOT NULL,
  `read_at` bigint(20) NOT NULL,
  `known_to` bigint(20) NOT NULL DEFAULT 0,
  `read_by` bigint(20) NOT NULL DEFAULT 0,
  `added_rows` bigint(20) NOT NULL DEFAULT 0,
  `token` bigint(20) NOT NULL,
  PRIMARY KEY (`source`,`schema_name`,`table_name`,`number`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `copying_chunk` WRITE;
/*!40000 ALTER TABLE `copying_chunk` DISABLE KEYS */;
INSERT INTO `copying_chunk` VALUES
('a','c','orders_1',0,NULL,'[\"3530\"]',1,50,950,0,1099511698147,1099511698147,50,5198555971884723803),
('a','c','orders_1',1,'[\"3530\"]','[\"313030\"]',0,0,0,0,0,0,0,5198555971884723803),
('a','c','orders_1',2,'[\"313030\"]','[\"313530\"]',0,0,0,0,0,0,0,5198555971884723803),
('a','c','orders_2',0,NULL,'[\"31303030303530\"]',0,0,0,0,0,0,0,5198555971884723803),
('a','c','orders_2',1,'[\"31303030303530\"]','[\"31303030313030\"]',0,0,0,0,0,0,0,5198555971884723803),
('b','c','orders_1',0,NULL,'[\"32303030303530\"]',1,50,950,0,1099511673246,1099511673246,50,5198555971884723803),
('b','c','orders_1',1,'[\"32303030303530\"]','[\"32303030313030\"]',1,50,950,0,1099511673246,1099511673246,50,5198555971884723803),
('b','c','orders_1',2,'[\"32303030313030\"]','[\"32303030313530\"]',1,50,950,0,1099511673246,1099511673246,50,5198555971884723803),
('b','c','orders_1',3,'[\"32303030313530\"]','[\"32303030323030\"]',1,50,950,0,1099511673246,1099511673246,50,5198555971884723803),
('b','c','orders_1',4,'[\"32303030323030\"]','[\"32303030323530\"]',0,0,0,0,0,0,0,5198555971884723803);
/*!40000 ALTER TABLE `copying_chunk` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `copying_copy`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `copying_copy` (
  `source` varchar(64) NOT NULL,
  `done` tinyint(4) NOT NULL,
  `end_file` varchar(255) NOT NULL,
  `end_offset` bigint(20) unsigned NOT NULL,
  PRIMARY KEY (`source`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `copying_copy` WRITE;
/*!40000 ALTER TABLE `copying_copy` DISABLE KEYS */;
INSERT INTO `copying_copy` VALUES
('a',0,'',0),
('b',0,'',0);
/*!40000 ALTER TABLE `copying_copy` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `copying_copy_target`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `copying_copy_target` (
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `key_lost` tinyint(4) NOT NULL,
  `forgotten_rows` bigint(20) NOT NULL,
  PRIMARY KEY (`target_schema`,`target_table`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `copying_copy_target` WRITE;
/*!40000 ALTER TABLE `copying_copy_target` DISABLE KEYS */;
INSERT INTO `copying_copy_target` VALUES
('mc','orders',0,0),
('mc','users',0,0);
/*!40000 ALTER TABLE `copying_copy_target` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `copying_ddl`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `copying_ddl` (
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `version` int(11) NOT NULL,
  `statement` longtext NOT NULL,
  `owner` varchar(64) NOT NULL,
  `schema_name` varchar(64) NOT NULL,
  `table_name` varchar(64) NOT NULL,
  `transaction_key` bigint(20) NOT NULL,
  `state` varchar(16) NOT NULL,
  `fingerprint` varchar(64) NOT NULL,
  `decision` longtext NOT NULL,
  `entry` longtext NOT NULL,
  `saved_at` timestamp NOT NULL DEFAULT current_timestamp() ON UPDATE current_timestamp(),
  PRIMARY KEY (`target_schema`,`target_table`,`version`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `copying_ddl` WRITE;
/*!40000 ALTER TABLE `copying_ddl` DISABLE KEYS */;
/*!40000 ALTER TABLE `copying_ddl` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `copying_ddl_override`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `copying_ddl_override` (
  `source` varchar(64) NOT NULL,
  `position_key` bigint(20) NOT NULL,
  `binlog_file` varchar(255) NOT NULL,
  `binlog_offset` bigint(20) unsigned NOT NULL,
  `action` varchar(16) NOT NULL,
  `statements` longtext NOT NULL,
  PRIMARY KEY (`source`,`position_key`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `copying_ddl_override` WRITE;
/*!40000 ALTER TABLE `copying_ddl_override` DISABLE KEYS */;
/*!40000 ALTER TABLE `copying_ddl_override` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `copying_declared`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `copying_declared` (
  `source` varchar(64) NOT NULL,
  `schema_name` varchar(64) NOT NULL,
  `table_name` varchar(64) NOT NULL,
  `since` bigint(20) NOT NULL,
  `structure` longtext NOT NULL,
  PRIMARY KEY (`source`,`schema_name`,`table_name`,`since`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `copying_declared` WRITE;
/*!40000 ALTER TABLE `copying_declared` DISABLE KEYS */;
/*!40000 ALTER TABLE `copying_declared` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `copying_failover`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `copying_failover` (
  `source` varchar(64) NOT NULL,
  `number` int(11) NOT NULL,
  `server_id` bigint(20) unsigned NOT NULL,
  `server_uuid` varchar(36) NOT NULL,
  `binlog_file` varchar(255) NOT NULL,
  `binlog_offset` bigint(20) unsigned NOT NULL,
  `gtid` longtext NOT NULL,
  `logged` longtext NOT NULL,
  `saved_at` timestamp NOT NULL DEFAULT current_timestamp(),
  PRIMARY KEY (`source`,`number`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `copying_failover` WRITE;
/*!40000 ALTER TABLE `copying_failover` DISABLE KEYS */;
/*!40000 ALTER TABLE `copying_failover` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `copying_group`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `copying_group` (
  `source` varchar(64) NOT NULL,
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `state` longtext NOT NULL,
  PRIMARY KEY (`source`,`target_schema`,`target_table`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `copying_group` WRITE;
/*!40000 ALTER TABLE `copying_group` DISABLE KEYS */;
INSERT INTO `copying_group` VALUES
('a','mc','orders','{\"base\":0,\"members\":[[{\"schema\":\"c\",\"table\":\"orders_1\"},{\"version\":0,\"since\":[0,0],\"awaited\":[],\"optional\":[],\"idle\":[],\"had_rows\":true}],[{\"schema\":\"c\",\"table\":\"orders_2\"},{\"version\":0,\"since\":[0,0],\"awaited\":[],\"optional\":[],\"idle\":[],\"had_rows\":true}]],\"dropped\":[]}'),
('a','mc','users','{\"base\":0,\"members\":[[{\"schema\":\"c\",\"table\":\"users_1\"},{\"version\":0,\"since\":[0,0],\"awaited\":[],\"optional\":[],\"idle\":[],\"had_rows\":true}]],\"dropped\":[]}'),
('b','mc','orders','{\"base\":0,\"members\":[[{\"schema\":\"c\",\"table\":\"orders_1\"},{\"version\":0,\"since\":[0,0],\"awaited\":[],\"optional\":[],\"idle\":[],\"had_rows\":true}]],\"dropped\":[]}'),
('b','mc','users','{\"base\":0,\"members\":[[{\"schema\":\"c\",\"table\":\"users_1\"},{\"version\":0,\"since\":[0,0],\"awaited\":[],\"optional\":[],\"idle\":[],\"had_rows\":true}]],\"dropped\":[]}');
/*!40000 ALTER TABLE `copying_group` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `copying_held`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `copying_held` (
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `all_of` tinyint(1) NOT NULL,
  `shards` longtext NOT NULL,
  `reason` varchar(1000) NOT NULL,
  PRIMARY KEY (`target_schema`,`target_table`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `copying_held` WRITE;
/*!40000 ALTER TABLE `copying_held` DISABLE KEYS */;
/*!40000 ALTER TABLE `copying_held` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `copying_late_cascade`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `copying_late_cascade` (
  `source` varchar(255) NOT NULL,
  `member_schema` varchar(64) NOT NULL,
  `member_table` varchar(64) NOT NULL,
  `transaction_key` bigint(20) NOT NULL,
  `ordinal` bigint(20) NOT NULL,
  `parent_schema` varchar(64) NOT NULL,
  `parent_table` varchar(64) NOT NULL,
  `number` int(11) NOT NULL,
  `columns` longtext NOT NULL,
  `changes` longtext NOT NULL,
  PRIMARY KEY (`source`,`member_schema`,`member_table`,`transaction_key`,`ordinal`,`parent_schema`,`parent_table`,`number`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `copying_late_cascade` WRITE;
/*!40000 ALTER TABLE `copying_late_cascade` DISABLE KEYS */;
/*!40000 ALTER TABLE `copying_late_cascade` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `copying_later_copy`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `copying_later_copy` (
  `source` varchar(64) NOT NULL,
  `schema_name` varchar(64) NOT NULL,
  `table_name` varchar(64) NOT NULL,
  `place` bigint(20) NOT NULL,
  `structure` longtext NOT NULL,
  PRIMARY KEY (`source`,`schema_name`,`table_name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `copying_later_copy` WRITE;
/*!40000 ALTER TABLE `copying_later_copy` DISABLE KEYS */;
/*!40000 ALTER TABLE `copying_later_copy` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `copying_lease`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `copying_lease` (
  `id` tinyint(4) NOT NULL,
  `token` bigint(20) NOT NULL,
  `revision` bigint(20) NOT NULL,
  `host` varchar(255) NOT NULL,
  `process` bigint(20) NOT NULL,
  `machine` varchar(128) NOT NULL,
  `begun` varchar(64) NOT NULL,
  `taken_at` datetime(6) NOT NULL,
  `expires_at` datetime(6) NOT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `copying_lease` WRITE;
/*!40000 ALTER TABLE `copying_lease` DISABLE KEYS */;
INSERT INTO `copying_lease` VALUES
(1,5198555971884723803,21,'vm',30274,'3f433f22-1f47-4338-9340-6c4720624f6d pid:[4026531836]','4518420','2026-11-30 20:18:08.919331','2026-11-30 20:18:14.625487');
/*!40000 ALTER TABLE `copying_lease` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `copying_member`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `copying_member` (
  `source` varchar(64) NOT NULL,
  `schema_name` varchar(64) NOT NULL,
  `table_name` varchar(64) NOT NULL,
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `version` int(11) NOT NULL,
  `since` bigint(20) NOT NULL,
  `structure` longtext NOT NULL,
  `provenance` varchar(16) NOT NULL,
  `doubt` text NOT NULL,
  `copy_state` tinyint(4) NOT NULL DEFAULT 0,
  PRIMARY KEY (`source`,`schema_name`,`table_name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `copying_member` WRITE;
/*!40000 ALTER TABLE `copying_member` DISABLE KEYS */;
INSERT INTO `copying_member` VALUES
('a','c','orders_1','mc','orders',0,0,'{\"schema\": \"c\", \"name\": \"orders_1\", \"columns\": [{\"name\": \"id\", \"type\": \"bigint(20)\", \"charset\": \"\", \"collation\": \"\", \"nullable\": false, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}, {\"name\": \"name\", \"type\": \"varchar(40)\", \"charset\": \"utf8mb4\", \"collation\": \"utf8mb4_general_ci\", \"nullable\": true, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}, {\"name\": \"n\", \"type\": \"int(11)\", \"charset\": \"\", \"collation\": \"\", \"nullable\": true, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}], \"keys\": [{\"name\": \"PRIMARY\", \"columns\": [\"id\"], \"nullable\": false, \"prefix\": false}], \"create_sql\": \"CREATE TABLE `orders_1` (\\n  `id` bigint(20) NOT NULL,\\n  `name` varchar(40) DEFAULT NULL,\\n  `n` int(11) DEFAULT NULL,\\n  PRIMARY KEY (`id`)\\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci\"}','read','',0),
('a','c','orders_2','mc','orders',0,0,'{\"schema\": \"c\", \"name\": \"orders_2\", \"columns\": [{\"name\": \"id\", \"type\": \"bigint(20)\", \"charset\": \"\", \"collation\": \"\", \"nullable\": false, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}, {\"name\": \"name\", \"type\": \"varchar(40)\", \"charset\": \"utf8mb4\", \"collation\": \"utf8mb4_general_ci\", \"nullable\": true, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}, {\"name\": \"n\", \"type\": \"int(11)\", \"charset\": \"\", \"collation\": \"\", \"nullable\": true, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}], \"keys\": [{\"name\": \"PRIMARY\", \"columns\": [\"id\"], \"nullable\": false, \"prefix\": false}], \"create_sql\": \"CREATE TABLE `orders_2` (\\n  `id` bigint(20) NOT NULL,\\n  `name` varchar(40) DEFAULT NULL,\\n  `n` int(11) DEFAULT NULL,\\n  PRIMARY KEY (`id`)\\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci\"}','read','',0),
('a','c','users_1','mc','users',0,0,'{\"schema\": \"c\", \"name\": \"users_1\", \"columns\": [{\"name\": \"id\", \"type\": \"bigint(20)\", \"charset\": \"\", \"collation\": \"\", \"nullable\": false, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}, {\"name\": \"name\", \"type\": \"varchar(40)\", \"charset\": \"utf8mb4\", \"collation\": \"utf8mb4_general_ci\", \"nullable\": true, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}, {\"name\": \"n\", \"type\": \"int(11)\", \"charset\": \"\", \"collation\": \"\", \"nullable\": true, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}], \"keys\": [{\"name\": \"PRIMARY\", \"columns\": [\"id\"], \"nullable\": false, \"prefix\": false}], \"create_sql\": \"CREATE TABLE `users_1` (\\n  `id` bigint(20) NOT NULL,\\n  `name` varchar(40) DEFAULT NULL,\\n  `n` int(11) DEFAULT NULL,\\n  PRIMARY KEY (`id`)\\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci\"}','read','',0),
('b','c','orders_1','mc','orders',0,0,'{\"schema\": \"c\", \"name\": \"orders_1\", \"columns\": [{\"name\": \"id\", \"type\": \"bigint(20)\", \"charset\": \"\", \"collation\": \"\", \"nullable\": false, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}, {\"name\": \"name\", \"type\": \"varchar(40)\", \"charset\": \"utf8mb4\", \"collation\": \"utf8mb4_general_ci\", \"nullable\": true, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}, {\"name\": \"n\", \"type\": \"int(11)\", \"charset\": \"\", \"collation\": \"\", \"nullable\": true, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}], \"keys\": [{\"name\": \"PRIMARY\", \"columns\": [\"id\"], \"nullable\": false, \"prefix\": false}], \"create_sql\": \"CREATE TABLE `orders_1` (\\n  `id` bigint(20) NOT NULL,\\n  `name` varchar(40) DEFAULT NULL,\\n  `n` int(11) DEFAULT NULL,\\n  PRIMARY KEY (`id`)\\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci\"}','read','',0),
('b','c','users_1','mc','users',0,0,'{\"schema\": \"c\", \"name\": \"users_1\", \"columns\": [{\"name\": \"id\", \"type\": \"bigint(20)\", \"charset\": \"\", \"collation\": \"\", \"nullable\": false, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}, {\"name\": \"name\", \"type\": \"varchar(40)\", \"charset\": \"utf8mb4\", \"collation\": \"utf8mb4_general_ci\", \"nullable\": true, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}, {\"name\": \"n\", \"type\": \"int(11)\", \"charset\": \"\", \"collation\": \"\", \"nullable\": true, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}], \"keys\": [{\"name\": \"PRIMARY\", \"columns\": [\"id\"], \"nullable\": false, \"prefix\": false}], \"create_sql\": \"CREATE TABLE `users_1` (\\n  `id` bigint(20) NOT NULL,\\n  `name` varchar(40) DEFAULT NULL,\\n  `n` int(11) DEFAULT NULL,\\n  PRIMARY KEY (`id`)\\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci\"}','read','',0);
/*!40000 ALTER TABLE `copying_member` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `copying_moved_shard`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `copying_moved_shard` (
  `number` int(11) NOT NULL,
  `item` int(11) NOT NULL,
  `source` varchar(64) NOT NULL,
  `schema_name` varchar(64) NOT NULL,
  `table_name` varchar(64) NOT NULL,
  `place` bigint(20) NOT NULL,
  `former_schema` varchar(64) NOT NULL,
  `former_table` varchar(64) NOT NULL,
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `version` int(11) NOT NULL,
  `state` varchar(16) NOT NULL,
  PRIMARY KEY (`number`,`item`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `copying_moved_shard` WRITE;
/*!40000 ALTER TABLE `copying_moved_shard` DISABLE KEYS */;
/*!40000 ALTER TABLE `copying_moved_shard` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `copying_onlineddl`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `copying_onlineddl` (
  `source` varchar(64) NOT NULL,
  `ghost_schema` varchar(64) NOT NULL,
  `ghost_table` varchar(64) NOT NULL,
  `place` bigint(20) NOT NULL,
  `act` varchar(16) NOT NULL,
  `ddl` longtext NOT NULL,
  `default_schema` varchar(64) NOT NULL,
  `moment` bigint(20) NOT NULL,
  `context` longtext NOT NULL,
  PRIMARY KEY (`source`,`ghost_schema`,`ghost_table`,`place`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `copying_onlineddl` WRITE;
/*!40000 ALTER TABLE `copying_onlineddl` DISABLE KEYS */;
/*!40000 ALTER TABLE `copying_onlineddl` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `copying_reconciliation`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `copying_reconciliation` (
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `condition_digest` char(64) NOT NULL,
  `row_condition` longtext NOT NULL,
  `column_names` longtext NOT NULL,
  `asked` bigint(20) NOT NULL,
  `begun` bigint(20) NOT NULL,
  `corrected` bigint(20) NOT NULL,
  `progress` longtext NOT NULL,
  `queued_at` bigint(20) NOT NULL,
  `safe_sources` longtext NOT NULL,
  PRIMARY KEY (`target_schema`,`target_table`,`condition_digest`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `copying_reconciliation` WRITE;
/*!40000 ALTER TABLE `copying_reconciliation` DISABLE KEYS */;
/*!40000 ALTER TABLE `copying_reconciliation` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `copying_retired`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `copying_retired` (
  `source` varchar(64) NOT NULL,
  `schema_name` varchar(64) NOT NULL,
  `table_name` varchar(64) NOT NULL,
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `place` bigint(20) NOT NULL,
  `retired_at` bigint(20) NOT NULL,
  PRIMARY KEY (`source`,`schema_name`,`table_name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `copying_retired` WRITE;
/*!40000 ALTER TABLE `copying_retired` DISABLE KEYS */;
/*!40000 ALTER TABLE `copying_retired` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `copying_row_owner`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `copying_row_owner` (
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `source` varchar(64) NOT NULL,
  `schema_name` varchar(64) NOT NULL,
  `table_name` varchar(64) NOT NULL,
  `ended` tinyint(1) NOT NULL,
  `marks` text NOT NULL,
  PRIMARY KEY (`target_schema`,`target_table`,`source`,`schema_name`,`table_name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `copying_row_owner` WRITE;
/*!40000 ALTER TABLE `copying_row_owner` DISABLE KEYS */;
INSERT INTO `copying_row_owner` VALUES
('mc','orders','','','',0,''),
('mc','users','','','',0,'');
/*!40000 ALTER TABLE `copying_row_owner` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `copying_rules`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `copying_rules` (
  `source` varchar(64) NOT NULL,
  `rules` longtext NOT NULL,
  PRIMARY KEY (`source`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `copying_rules` WRITE;
/*!40000 ALTER TABLE `copying_rules` DISABLE KEYS */;
INSERT INTO `copying_rules` VALUES
('a','{\"source\": \"a\", \"case_sensitive\": false, \"routes\": [{\"name\": \"merge\", \"schema_pattern\": \"c\", \"table_pattern\": \"orders_*\", \"target_schema\": \"mc\", \"target_table\": \"orders\"}, {\"name\": \"schema\", \"schema_pattern\": \"c\", \"table_pattern\": \"\", \"target_schema\": \"mc\", \"target_table\": \"\"}, {\"name\": \"users\", \"schema_pattern\": \"c\", \"table_pattern\": \"users_*\", \"target_schema\": \"mc\", \"target_table\": \"users\"}], \"extractions\": [[\"merge\", []], [\"schema\", []], [\"users\", []]], \"mappings\": [], \"filters\": [], \"expressions\": []}'),
('b','{\"source\": \"b\", \"case_sensitive\": false, \"routes\": [{\"name\": \"merge\", \"schema_pattern\": \"c\", \"table_pattern\": \"orders_*\", \"target_schema\": \"mc\", \"target_table\": \"orders\"}, {\"name\": \"schema\", \"schema_pattern\": \"c\", \"table_pattern\": \"\", \"target_schema\": \"mc\", \"target_table\": \"\"}, {\"name\": \"users\", \"schema_pattern\": \"c\", \"table_pattern\": \"users_*\", \"target_schema\": \"mc\", \"target_table\": \"users\"}], \"extractions\": [[\"merge\", []], [\"schema\", []], [\"users\", []]], \"mappings\": [], \"filters\": [], \"expressions\": []}');
/*!40000 ALTER TABLE `copying_rules` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `copying_safe_mode`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `copying_safe_mode` (
  `source` varchar(64) NOT NULL,
  `end_file` varchar(255) NOT NULL,
  `end_offset` bigint(20) unsigned NOT NULL,
  PRIMARY KEY (`source`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `copying_safe_mode` WRITE;
/*!40000 ALTER TABLE `copying_safe_mode` DISABLE KEYS */;
/*!40000 ALTER TABLE `copying_safe_mode` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `copying_statement_gtid`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `copying_statement_gtid` (
  `source` varchar(64) NOT NULL,
  `place` bigint(20) NOT NULL,
  `gtid` varchar(128) NOT NULL,
  PRIMARY KEY (`source`,`place`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `copying_statement_gtid` WRITE;
/*!40000 ALTER TABLE `copying_statement_gtid` DISABLE KEYS */;
/*!40000 ALTER TABLE `copying_statement_gtid` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `copying_switch`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `copying_switch` (
  `id` tinyint(4) NOT NULL,
  `finished_at` bigint(20) NOT NULL,
  `frozen` longtext NOT NULL,
  `certificate` longtext NOT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `copying_switch` WRITE;
/*!40000 ALTER TABLE `copying_switch` DISABLE KEYS */;
/*!40000 ALTER TABLE `copying_switch` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `copying_tracked_key`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `copying_tracked_key` (
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `digest` binary(32) NOT NULL,
  `key_columns` longtext NOT NULL,
  `key_line` longblob NOT NULL,
  `times` bigint(20) NOT NULL,
  PRIMARY KEY (`target_schema`,`target_table`,`digest`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `copying_tracked_key` WRITE;
/*!40000 ALTER TABLE `copying_tracked_key` DISABLE KEYS */;
/*!40000 ALTER TABLE `copying_tracked_key` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `copying_unvalidated`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `copying_unvalidated` (
  `number` int(11) NOT NULL,
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `source` varchar(64) NOT NULL,
  `schema_name` varchar(64) NOT NULL,
  `table_name` varchar(64) NOT NULL,
  `key_columns` longtext NOT NULL,
  `key_lines` longblob NOT NULL,
  PRIMARY KEY (`number`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `copying_unvalidated` WRITE;
/*!40000 ALTER TABLE `copying_unvalidated` DISABLE KEYS */;
/*!40000 ALTER TABLE `copying_unvalidated` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `copying_validation`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `copying_validation` (
  `id` bigint(20) NOT NULL AUTO_INCREMENT,
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `digest` binary(32) NOT NULL,
  `key_line` longblob NOT NULL,
  `kind` varchar(16) NOT NULL,
  `shard` varchar(255) NOT NULL,
  `detail` text NOT NULL,
  `state` varchar(16) NOT NULL,
  `found_at` bigint(20) NOT NULL,
  `corrections` int(11) NOT NULL DEFAULT 0,
  PRIMARY KEY (`id`),
  UNIQUE KEY `target_schema` (`target_schema`,`target_table`,`digest`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `copying_validation` WRITE;
/*!40000 ALTER TABLE `copying_validation` DISABLE KEYS */;
/*!40000 ALTER TABLE `copying_validation` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `copying_verification`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `copying_verification` (
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `verified_at` bigint(20) NOT NULL,
  `compared` bigint(20) NOT NULL,
  `differing` bigint(20) NOT NULL,
  `progress` longtext NOT NULL,
  PRIMARY KEY (`target_schema`,`target_table`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `copying_verification` WRITE;
/*!40000 ALTER TABLE `copying_verification` DISABLE KEYS */;
/*!40000 ALTER TABLE `copying_verification` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `copying_watermark`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `copying_watermark` (
  `source` varchar(64) NOT NULL,
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `bucket` smallint(6) NOT NULL,
  `version` int(11) NOT NULL,
  `transaction_key` bigint(20) NOT NULL,
  `ordinal` bigint(20) NOT NULL,
  `token` bigint(20) NOT NULL DEFAULT 0,
  `gtid` longtext DEFAULT NULL,
  `anchor` text DEFAULT NULL,
  PRIMARY KEY (`source`,`target_schema`,`target_table`,`bucket`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `copying_watermark` WRITE;
/*!40000 ALTER TABLE `copying_watermark` DISABLE KEYS */;
/*!40000 ALTER TABLE `copying_watermark` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `locked_checkpoint`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `locked_checkpoint` (
  `source` varchar(64) NOT NULL,
  `binlog_file` varchar(255) NOT NULL,
  `binlog_offset` bigint(20) unsigned NOT NULL,
  `gtid` longtext NOT NULL,
  `server_id` bigint(20) unsigned NOT NULL,
  `server_uuid` varchar(36) NOT NULL,
  `folds_names` tinyint(1) DEFAULT NULL,
  `anchor_file` varchar(255) DEFAULT NULL,
  `anchor_offset` bigint(20) unsigned DEFAULT NULL,
  `anchor_created` bigint(20) unsigned DEFAULT NULL,
  `anchor_fingerprint` bigint(20) unsigned DEFAULT NULL,
  `prepared` longtext NOT NULL,
  `key_buckets` smallint(6) NOT NULL,
  `shard_mode` varchar(16) NOT NULL,
  `open_items` int(11) NOT NULL,
  `applied` varchar(280) NOT NULL,
  `begin_again` tinyint(4) NOT NULL DEFAULT 0,
  `saved_at` timestamp NOT NULL DEFAULT current_timestamp() ON UPDATE current_timestamp(),
  PRIMARY KEY (`source`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `locked_checkpoint` WRITE;
/*!40000 ALTER TABLE `locked_checkpoint` DISABLE KEYS */;
INSERT INTO `locked_checkpoint` VALUES
('a','binlog.000001',3385,'0-4101-11',4101,'',0,'binlog.000001',3224,1796069867,2997331872,'',4,'pessimistic',1,'binlog.000001:5581',0,'2026-11-30 20:17:58'),
('b','binlog.000001',2409,'0-4102-7',4102,'',0,'binlog.000001',2152,1796069867,2657443539,'',4,'pessimistic',0,'binlog.000001:2409',0,'2026-11-30 20:17:58');
/*!40000 ALTER TABLE `locked_checkpoint` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `locked_chunk`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `locked_chunk` (
  `source` varchar(64) NOT NULL,
  `schema_name` varchar(64) NOT NULL,
  `table_name` varchar(64) NOT NULL,
  `number` int(11) NOT NULL,
  `lower_key` longtext DEFAULT NULL,
  `upper_key` longtext DEFAULT NULL,
  `state` tinyint(4) NOT NULL,
  `row_count` bigint(20) NOT NULL,
  `byte_count` bigint(20) NOT NULL,
  `read_at` bigint(20) NOT NULL,
  `known_to` bigint(20) NOT NULL DEFAULT 0,
  `read_by` bigint(20) NOT NULL DEFAULT 0,
  `added_rows` bigint(20) NOT NULL DEFAULT 0,
  `token` bigint(20) NOT NULL,
  PRIMARY KEY (`source`,`schema_name`,`table_name`,`number`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `locked_chunk` WRITE;
/*!40000 ALTER TABLE `locked_chunk` DISABLE KEYS */;
INSERT INTO `locked_chunk` VALUES
('a','l','orders_1',0,NULL,'[\"3130\"]',1,10,82,0,1099511630847,1099511630847,10,908800838001268930),
('a','l','orders_1',1,'[\"3130\"]','[\"3230\"]',1,10,100,0,1099511630847,1099511630847,10,908800838001268930),
('a','l','orders_1',2,'[\"3230\"]',NULL,1,0,0,0,1099511630847,1099511630847,0,908800838001268930),
('a','l','orders_2',0,NULL,'[\"31303030303130\"]',1,10,141,0,1099511630847,1099511630847,10,908800838001268930),
('a','l','orders_2',1,'[\"31303030303130\"]','[\"31303030303230\"]',1,10,150,0,1099511630847,1099511630847,10,908800838001268930),
('a','l','orders_2',2,'[\"31303030303230\"]',NULL,1,0,0,0,1099511630847,1099511630847,0,908800838001268930),
('a','l','users_1',0,NULL,'[\"3130\"]',1,10,190,0,1099511630847,1099511630847,10,908800838001268930),
('a','l','users_1',1,'[\"3130\"]','[\"3230\"]',1,10,190,0,1099511630847,1099511630847,10,908800838001268930),
('a','l','users_1',2,'[\"3230\"]',NULL,1,0,0,0,1099511630847,1099511630847,0,908800838001268930),
('b','l','orders_1',0,NULL,'[\"32303030303130\"]',1,10,141,0,1099511629928,1099511629928,10,908800838001268930),
('b','l','orders_1',1,'[\"32303030303130\"]','[\"32303030303230\"]',1,10,150,0,1099511629928,1099511629928,10,908800838001268930),
('b','l','orders_1',2,'[\"32303030303230\"]',NULL,1,0,0,0,1099511629928,1099511629928,0,908800838001268930),
('b','l','users_1',0,NULL,'[\"32303030303130\"]',1,10,190,0,1099511629928,1099511629928,10,908800838001268930),
('b','l','users_1',1,'[\"32303030303130\"]','[\"32303030303230\"]',1,10,190,0,1099511629928,1099511629928,10,908800838001268930),
('b','l','users_1',2,'[\"32303030303230\"]',NULL,1,0,0,0,1099511629928,1099511629928,0,908800838001268930);
/*!40000 ALTER TABLE `locked_chunk` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `locked_copy`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `locked_copy` (
  `source` varchar(64) NOT NULL,
  `done` tinyint(4) NOT NULL,
  `end_file` varchar(255) NOT NULL,
  `end_offset` bigint(20) unsigned NOT NULL,
  PRIMARY KEY (`source`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `locked_copy` WRITE;
/*!40000 ALTER TABLE `locked_copy` DISABLE KEYS */;
INSERT INTO `locked_copy` VALUES
('a',1,'binlog.000001',3071),
('b',1,'binlog.000001',2152);
/*!40000 ALTER TABLE `locked_copy` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `locked_copy_target`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `locked_copy_target` (
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `key_lost` tinyint(4) NOT NULL,
  `forgotten_rows` bigint(20) NOT NULL,
  PRIMARY KEY (`target_schema`,`target_table`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `locked_copy_target` WRITE;
/*!40000 ALTER TABLE `locked_copy_target` DISABLE KEYS */;
/*!40000 ALTER TABLE `locked_copy_target` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `locked_ddl`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `locked_ddl` (
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `version` int(11) NOT NULL,
  `statement` longtext NOT NULL,
  `owner` varchar(64) NOT NULL,
  `schema_name` varchar(64) NOT NULL,
  `table_name` varchar(64) NOT NULL,
  `transaction_key` bigint(20) NOT NULL,
  `state` varchar(16) NOT NULL,
  `fingerprint` varchar(64) NOT NULL,
  `decision` longtext NOT NULL,
  `entry` longtext NOT NULL,
  `saved_at` timestamp NOT NULL DEFAULT current_timestamp() ON UPDATE current_timestamp(),
  PRIMARY KEY (`target_schema`,`target_table`,`version`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `locked_ddl` WRITE;
/*!40000 ALTER TABLE `locked_ddl` DISABLE KEYS */;
INSERT INTO `locked_ddl` VALUES
('ml','orders',1,'ALTER TABLE `ml`.`orders` ADD c INT DEFAULT 3','a','l','orders_1',1099511630537,'done','65a8faf8f6203083e5232d4e3588e6f8','{\"resolved\":{\"text\":\"alter table <table> add c int default 3\",\"unlocked\":false,\"skipped\":false,\"late\":\"\"},\"cutovers\":{\"a\":{\"version\":1,\"at\":[1099511630692,0],\"forced\":false,\"shown\":false},\"b\":{\"version\":1,\"at\":[1099511629773,0],\"forced\":false,\"shown\":false}},\"ordinal\":0,\"event\":{\"statement\":{\"schema\":\"l\",\"sql\":\"ALTER TABLE orders_1 ADD c INT DEFAULT 3\",\"transaction\":1099511630537,\"timestamp\":1796069875,\"context\":{\"sql_mode\":1411383296,\"time_zone\":\"+00:00\",\"microseconds\":0,\"collation_ids\":[45,45,45],\"explicit_timestamp_defaults\":true,\"mariadb\":true,\"connection_collation\":\"utf8mb4_general_ci\",\"server_collation\":\"utf8mb4_general_ci\",\"charset_collation_ids\":[],\"charset_collations\":[],\"time_names\":0,\"unread_code\":null},\"file\":\"binlog.000001\",\"offset\":2803,\"error\":0,\"gtid\":\"0-4101-8\"},\"instead\":null},\"before\":\"{\\\"schema\\\": \\\"ml\\\", \\\"name\\\": \\\"orders\\\", \\\"columns\\\": [{\\\"name\\\": \\\"id\\\", \\\"type\\\": \\\"bigint(20)\\\", \\\"charset\\\": \\\"\\\", \\\"collation\\\": \\\"\\\", \\\"nullable\\\": false, \\\"generated\\\": false, \\\"auto_increment\\\": false, \\\"learned\\\": false, \\\"withheld\\\": false, \\\"fill\\\": \\\"\\\"}, {\\\"name\\\": \\\"name\\\", \\\"type\\\": \\\"varchar(40)\\\", \\\"charset\\\": \\\"utf8mb4\\\", \\\"collation\\\": \\\"utf8mb4_general_ci\\\", \\\"nullable\\\": true, \\\"generated\\\": false, \\\"auto_increment\\\": false, \\\"learned\\\": false, \\\"withheld\\\": false, \\\"fill\\\": \\\"\\\"}, {\\\"name\\\": \\\"n\\\", \\\"type\\\": \\\"int(11)\\\", \\\"charset\\\": \\\"\\\", \\\"collation\\\": \\\"\\\", \\\"nullable\\\": true, \\\"generated\\\": false, \\\"auto_increment\\\": false, \\\"learned\\\": false, \\\"withheld\\\": false, \\\"fill\\\": \\\"\\\"}], \\\"keys\\\": [{\\\"name\\\": \\\"PRIMARY\\\", \\\"columns\\\": [\\\"id\\\"], \\\"nullable\\\": false, \\\"prefix\\\": false}], \\\"create_sql\\\": \\\"CREATE TABLE `orders` (\\\\n  `id` bigint(20) NOT NULL,\\\\n  `name` varchar(40) DEFAULT NULL,\\\\n  `n` int(11) DEFAULT NULL,\\\\n  PRIMARY KEY (`id`)\\\\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci\\\"}\",\"shown\":[]}','','2026-11-30 20:17:57');
/*!40000 ALTER TABLE `locked_ddl` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `locked_ddl_override`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `locked_ddl_override` (
  `source` varchar(64) NOT NULL,
  `position_key` bigint(20) NOT NULL,
  `binlog_file` varchar(255) NOT NULL,
  `binlog_offset` bigint(20) unsigned NOT NULL,
  `action` varchar(16) NOT NULL,
  `statements` longtext NOT NULL,
  PRIMARY KEY (`source`,`position_key`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `locked_ddl_override` WRITE;
/*!40000 ALTER TABLE `locked_ddl_override` DISABLE KEYS */;
/*!40000 ALTER TABLE `locked_ddl_override` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `locked_declared`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `locked_declared` (
  `source` varchar(64) NOT NULL,
  `schema_name` varchar(64) NOT NULL,
  `table_name` varchar(64) NOT NULL,
  `since` bigint(20) NOT NULL,
  `structure` longtext NOT NULL,
  PRIMARY KEY (`source`,`schema_name`,`table_name`,`since`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `locked_declared` WRITE;
/*!40000 ALTER TABLE `locked_declared` DISABLE KEYS */;
/*!40000 ALTER TABLE `locked_declared` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `locked_failover`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `locked_failover` (
  `source` varchar(64) NOT NULL,
  `number` int(11) NOT NULL,
  `server_id` bigint(20) unsigned NOT NULL,
  `server_uuid` varchar(36) NOT NULL,
  `binlog_file` varchar(255) NOT NULL,
  `binlog_offset` bigint(20) unsigned NOT NULL,
  `gtid` longtext NOT NULL,
  `logged` longtext NOT NULL,
  `saved_at` timestamp NOT NULL DEFAULT current_timestamp(),
  PRIMARY KEY (`source`,`number`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `locked_failover` WRITE;
/*!40000 ALTER TABLE `locked_failover` DISABLE KEYS */;
/*!40000 ALTER TABLE `locked_failover` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `locked_group`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `locked_group` (
  `source` varchar(64) NOT NULL,
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `state` longtext NOT NULL,
  PRIMARY KEY (`source`,`target_schema`,`target_table`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `locked_group` WRITE;
/*!40000 ALTER TABLE `locked_group` DISABLE KEYS */;
INSERT INTO `locked_group` VALUES
('a','ml','orders','{\"base\":0,\"members\":[[{\"schema\":\"l\",\"table\":\"orders_1\"},{\"version\":1,\"since\":[1099511630537,0],\"awaited\":[],\"optional\":[],\"idle\":[],\"had_rows\":true}],[{\"schema\":\"l\",\"table\":\"orders_2\"},{\"version\":1,\"since\":[1099511630692,0],\"awaited\":[],\"optional\":[],\"idle\":[],\"had_rows\":true}]],\"dropped\":[]}'),
('a','ml','users','{\"base\":0,\"members\":[[{\"schema\":\"l\",\"table\":\"users_1\"},{\"version\":0,\"since\":[0,0],\"awaited\":[],\"optional\":[],\"idle\":[],\"had_rows\":true}]],\"dropped\":[]}'),
('b','ml','orders','{\"base\":0,\"members\":[[{\"schema\":\"l\",\"table\":\"orders_1\"},{\"version\":1,\"since\":[1099511629773,0],\"awaited\":[],\"optional\":[],\"idle\":[],\"had_rows\":true}]],\"dropped\":[]}'),
('b','ml','users','{\"base\":0,\"members\":[[{\"schema\":\"l\",\"table\":\"users_1\"},{\"version\":0,\"since\":[0,0],\"awaited\":[],\"optional\":[],\"idle\":[],\"had_rows\":true}]],\"dropped\":[]}');
/*!40000 ALTER TABLE `locked_group` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `locked_held`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `locked_held` (
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `all_of` tinyint(1) NOT NULL,
  `shards` longtext NOT NULL,
  `reason` varchar(1000) NOT NULL,
  PRIMARY KEY (`target_schema`,`target_table`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `locked_held` WRITE;
/*!40000 ALTER TABLE `locked_held` DISABLE KEYS */;
INSERT INTO `locked_held` VALUES
('ml','orders',0,'[\"a: l.orders_1\"]','');
/*!40000 ALTER TABLE `locked_held` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `locked_late_cascade`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `locked_late_cascade` (
  `source` varchar(255) NOT NULL,
  `member_schema` varchar(64) NOT NULL,
  `member_table` varchar(64) NOT NULL,
  `transaction_key` bigint(20) NOT NULL,
  `ordinal` bigint(20) NOT NULL,
  `parent_schema` varchar(64) NOT NULL,
  `parent_table` varchar(64) NOT NULL,
  `number` int(11) NOT NULL,
  `columns` longtext NOT NULL,
  `changes` longtext NOT NULL,
  PRIMARY KEY (`source`,`member_schema`,`member_table`,`transaction_key`,`ordinal`,`parent_schema`,`parent_table`,`number`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `locked_late_cascade` WRITE;
/*!40000 ALTER TABLE `locked_late_cascade` DISABLE KEYS */;
/*!40000 ALTER TABLE `locked_late_cascade` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `locked_later_copy`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `locked_later_copy` (
  `source` varchar(64) NOT NULL,
  `schema_name` varchar(64) NOT NULL,
  `table_name` varchar(64) NOT NULL,
  `place` bigint(20) NOT NULL,
  `structure` longtext NOT NULL,
  PRIMARY KEY (`source`,`schema_name`,`table_name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `locked_later_copy` WRITE;
/*!40000 ALTER TABLE `locked_later_copy` DISABLE KEYS */;
/*!40000 ALTER TABLE `locked_later_copy` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `locked_lease`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `locked_lease` (
  `id` tinyint(4) NOT NULL,
  `token` bigint(20) NOT NULL,
  `revision` bigint(20) NOT NULL,
  `host` varchar(255) NOT NULL,
  `process` bigint(20) NOT NULL,
  `machine` varchar(128) NOT NULL,
  `begun` varchar(64) NOT NULL,
  `taken_at` datetime(6) NOT NULL,
  `expires_at` datetime(6) NOT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `locked_lease` WRITE;
/*!40000 ALTER TABLE `locked_lease` DISABLE KEYS */;
INSERT INTO `locked_lease` VALUES
(1,908800838001268930,42,'vm',29935,'3f433f22-1f47-4338-9340-6c4720624f6d pid:[4026531836]','4516864','2026-11-30 20:17:53.128129','2026-11-30 20:18:00.043270');
/*!40000 ALTER TABLE `locked_lease` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `locked_member`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `locked_member` (
  `source` varchar(64) NOT NULL,
  `schema_name` varchar(64) NOT NULL,
  `table_name` varchar(64) NOT NULL,
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `version` int(11) NOT NULL,
  `since` bigint(20) NOT NULL,
  `structure` longtext NOT NULL,
  `provenance` varchar(16) NOT NULL,
  `doubt` text NOT NULL,
  `copy_state` tinyint(4) NOT NULL DEFAULT 0,
  PRIMARY KEY (`source`,`schema_name`,`table_name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `locked_member` WRITE;
/*!40000 ALTER TABLE `locked_member` DISABLE KEYS */;
INSERT INTO `locked_member` VALUES
('a','l','orders_1','ml','orders',1,1099511630537,'{\"schema\": \"l\", \"name\": \"orders_1\", \"columns\": [{\"name\": \"id\", \"type\": \"bigint(20)\", \"charset\": \"\", \"collation\": \"\", \"nullable\": false, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}, {\"name\": \"name\", \"type\": \"varchar(40)\", \"charset\": \"utf8mb4\", \"collation\": \"utf8mb4_general_ci\", \"nullable\": true, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}, {\"name\": \"n\", \"type\": \"int(11)\", \"charset\": \"\", \"collation\": \"\", \"nullable\": true, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}, {\"name\": \"c\", \"type\": \"int(11)\", \"charset\": \"\", \"collation\": \"\", \"nullable\": true, \"generated\": false, \"auto_increment\": false, \"learned\": true, \"withheld\": false, \"fill\": \"\"}], \"keys\": [{\"name\": \"PRIMARY\", \"columns\": [\"id\"], \"nullable\": false, \"prefix\": false}], \"create_sql\": \"CREATE TABLE `orders_1` (\\n  `id` bigint(20) NOT NULL,\\n  `name` varchar(40) DEFAULT NULL,\\n  `n` int(11) DEFAULT NULL,\\n  `c` int(11) DEFAULT 3,\\n  PRIMARY KEY (`id`)\\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci\"}','learned','',0),
('a','l','orders_2','ml','orders',1,1099511630692,'{\"schema\": \"l\", \"name\": \"orders_2\", \"columns\": [{\"name\": \"id\", \"type\": \"bigint(20)\", \"charset\": \"\", \"collation\": \"\", \"nullable\": false, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}, {\"name\": \"name\", \"type\": \"varchar(40)\", \"charset\": \"utf8mb4\", \"collation\": \"utf8mb4_general_ci\", \"nullable\": true, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}, {\"name\": \"n\", \"type\": \"int(11)\", \"charset\": \"\", \"collation\": \"\", \"nullable\": true, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}, {\"name\": \"c\", \"type\": \"int(11)\", \"charset\": \"\", \"collation\": \"\", \"nullable\": true, \"generated\": false, \"auto_increment\": false, \"learned\": true, \"withheld\": false, \"fill\": \"\"}], \"keys\": [{\"name\": \"PRIMARY\", \"columns\": [\"id\"], \"nullable\": false, \"prefix\": false}], \"create_sql\": \"CREATE TABLE `orders_2` (\\n  `id` bigint(20) NOT NULL,\\n  `name` varchar(40) DEFAULT NULL,\\n  `n` int(11) DEFAULT NULL,\\n  `c` int(11) DEFAULT 3,\\n  PRIMARY KEY (`id`)\\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci\"}','learned','',0),
('a','l','users_1','ml','users',0,0,'{\"schema\": \"l\", \"name\": \"users_1\", \"columns\": [{\"name\": \"id\", \"type\": \"bigint(20)\", \"charset\": \"\", \"collation\": \"\", \"nullable\": false, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}, {\"name\": \"name\", \"type\": \"varchar(40)\", \"charset\": \"utf8mb4\", \"collation\": \"utf8mb4_general_ci\", \"nullable\": true, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}, {\"name\": \"n\", \"type\": \"int(11)\", \"charset\": \"\", \"collation\": \"\", \"nullable\": true, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}], \"keys\": [{\"name\": \"PRIMARY\", \"columns\": [\"id\"], \"nullable\": false, \"prefix\": false}], \"create_sql\": \"CREATE TABLE `users_1` (\\n  `id` bigint(20) NOT NULL,\\n  `name` varchar(40) DEFAULT NULL,\\n  `n` int(11) DEFAULT NULL,\\n  PRIMARY KEY (`id`)\\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci\"}','read','',0),
('b','l','orders_1','ml','orders',1,1099511629773,'{\"schema\": \"l\", \"name\": \"orders_1\", \"columns\": [{\"name\": \"id\", \"type\": \"bigint(20)\", \"charset\": \"\", \"collation\": \"\", \"nullable\": false, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}, {\"name\": \"name\", \"type\": \"varchar(40)\", \"charset\": \"utf8mb4\", \"collation\": \"utf8mb4_general_ci\", \"nullable\": true, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}, {\"name\": \"n\", \"type\": \"int(11)\", \"charset\": \"\", \"collation\": \"\", \"nullable\": true, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}, {\"name\": \"c\", \"type\": \"int(11)\", \"charset\": \"\", \"collation\": \"\", \"nullable\": true, \"generated\": false, \"auto_increment\": false, \"learned\": true, \"withheld\": false, \"fill\": \"\"}], \"keys\": [{\"name\": \"PRIMARY\", \"columns\": [\"id\"], \"nullable\": false, \"prefix\": false}], \"create_sql\": \"CREATE TABLE `orders_1` (\\n  `id` bigint(20) NOT NULL,\\n  `name` varchar(40) DEFAULT NULL,\\n  `n` int(11) DEFAULT NULL,\\n  `c` int(11) DEFAULT 3,\\n  PRIMARY KEY (`id`)\\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci\"}','learned','',0),
('b','l','users_1','ml','users',0,0,'{\"schema\": \"l\", \"name\": \"users_1\", \"columns\": [{\"name\": \"id\", \"type\": \"bigint(20)\", \"charset\": \"\", \"collation\": \"\", \"nullable\": false, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}, {\"name\": \"name\", \"type\": \"varchar(40)\", \"charset\": \"utf8mb4\", \"collation\": \"utf8mb4_general_ci\", \"nullable\": true, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}, {\"name\": \"n\", \"type\": \"int(11)\", \"charset\": \"\", \"collation\": \"\", \"nullable\": true, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}], \"keys\": [{\"name\": \"PRIMARY\", \"columns\": [\"id\"], \"nullable\": false, \"prefix\": false}], \"create_sql\": \"CREATE TABLE `users_1` (\\n  `id` bigint(20) NOT NULL,\\n  `name` varchar(40) DEFAULT NULL,\\n  `n` int(11) DEFAULT NULL,\\n  PRIMARY KEY (`id`)\\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci\"}','read','',0);
/*!40000 ALTER TABLE `locked_member` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `locked_moved_shard`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `locked_moved_shard` (
  `number` int(11) NOT NULL,
  `item` int(11) NOT NULL,
  `source` varchar(64) NOT NULL,
  `schema_name` varchar(64) NOT NULL,
  `table_name` varchar(64) NOT NULL,
  `place` bigint(20) NOT NULL,
  `former_schema` varchar(64) NOT NULL,
  `former_table` varchar(64) NOT NULL,
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `version` int(11) NOT NULL,
  `state` varchar(16) NOT NULL,
  PRIMARY KEY (`number`,`item`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `locked_moved_shard` WRITE;
/*!40000 ALTER TABLE `locked_moved_shard` DISABLE KEYS */;
/*!40000 ALTER TABLE `locked_moved_shard` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `locked_onlineddl`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `locked_onlineddl` (
  `source` varchar(64) NOT NULL,
  `ghost_schema` varchar(64) NOT NULL,
  `ghost_table` varchar(64) NOT NULL,
  `place` bigint(20) NOT NULL,
  `act` varchar(16) NOT NULL,
  `ddl` longtext NOT NULL,
  `default_schema` varchar(64) NOT NULL,
  `moment` bigint(20) NOT NULL,
  `context` longtext NOT NULL,
  PRIMARY KEY (`source`,`ghost_schema`,`ghost_table`,`place`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `locked_onlineddl` WRITE;
/*!40000 ALTER TABLE `locked_onlineddl` DISABLE KEYS */;
INSERT INTO `locked_onlineddl` VALUES
('a','l','_users_1_gho',1099511630847,'begun','CREATE TABLE _users_1_gho LIKE users_1','l',1796069877,'{\"sql_mode\": 1411383296, \"time_zone\": \"+00:00\", \"microseconds\": 0, \"collation_ids\": [45, 45, 45], \"explicit_timestamp_defaults\": true, \"mariadb\": true, \"connection_collation\": \"utf8mb4_general_ci\", \"server_collation\": \"utf8mb4_general_ci\", \"charset_collation_ids\": [], \"charset_collations\": [], \"time_names\": 0, \"unread_code\": null}'),
('a','l','_users_1_gho',1099511631000,'changed','ALTER TABLE _users_1_gho ADD phone VARCHAR(20)','l',1796069877,'{\"sql_mode\": 1411383296, \"time_zone\": \"+00:00\", \"microseconds\": 0, \"collation_ids\": [45, 45, 45], \"explicit_timestamp_defaults\": true, \"mariadb\": true, \"connection_collation\": \"utf8mb4_general_ci\", \"server_collation\": \"utf8mb4_general_ci\", \"charset_collation_ids\": [], \"charset_collations\": [], \"time_names\": 0, \"unread_code\": null}');
/*!40000 ALTER TABLE `locked_onlineddl` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `locked_reconciliation`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `locked_reconciliation` (
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `condition_digest` char(64) NOT NULL,
  `row_condition` longtext NOT NULL,
  `column_names` longtext NOT NULL,
  `asked` bigint(20) NOT NULL,
  `begun` bigint(20) NOT NULL,
  `corrected` bigint(20) NOT NULL,
  `progress` longtext NOT NULL,
  `queued_at` bigint(20) NOT NULL,
  `safe_sources` longtext NOT NULL,
  PRIMARY KEY (`target_schema`,`target_table`,`condition_digest`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `locked_reconciliation` WRITE;
/*!40000 ALTER TABLE `locked_reconciliation` DISABLE KEYS */;
/*!40000 ALTER TABLE `locked_reconciliation` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `locked_retired`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `locked_retired` (
  `source` varchar(64) NOT NULL,
  `schema_name` varchar(64) NOT NULL,
  `table_name` varchar(64) NOT NULL,
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `place` bigint(20) NOT NULL,
  `retired_at` bigint(20) NOT NULL,
  PRIMARY KEY (`source`,`schema_name`,`table_name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `locked_retired` WRITE;
/*!40000 ALTER TABLE `locked_retired` DISABLE KEYS */;
/*!40000 ALTER TABLE `locked_retired` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `locked_row_owner`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `locked_row_owner` (
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `source` varchar(64) NOT NULL,
  `schema_name` varchar(64) NOT NULL,
  `table_name` varchar(64) NOT NULL,
  `ended` tinyint(1) NOT NULL,
  `marks` text NOT NULL,
  PRIMARY KEY (`target_schema`,`target_table`,`source`,`schema_name`,`table_name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `locked_row_owner` WRITE;
/*!40000 ALTER TABLE `locked_row_owner` DISABLE KEYS */;
INSERT INTO `locked_row_owner` VALUES
('ml','orders','','','',0,''),
('ml','orders','a','l','orders_1',0,''),
('ml','orders','a','l','orders_2',0,''),
('ml','orders','b','l','orders_1',0,''),
('ml','users','','','',0,''),
('ml','users','a','l','users_1',0,''),
('ml','users','b','l','users_1',0,'');
/*!40000 ALTER TABLE `locked_row_owner` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `locked_rules`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `locked_rules` (
  `source` varchar(64) NOT NULL,
  `rules` longtext NOT NULL,
  PRIMARY KEY (`source`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `locked_rules` WRITE;
/*!40000 ALTER TABLE `locked_rules` DISABLE KEYS */;
INSERT INTO `locked_rules` VALUES
('a','{\"source\": \"a\", \"case_sensitive\": false, \"routes\": [{\"name\": \"merge\", \"schema_pattern\": \"l\", \"table_pattern\": \"orders_*\", \"target_schema\": \"ml\", \"target_table\": \"orders\"}, {\"name\": \"schema\", \"schema_pattern\": \"l\", \"table_pattern\": \"\", \"target_schema\": \"ml\", \"target_table\": \"\"}, {\"name\": \"users\", \"schema_pattern\": \"l\", \"table_pattern\": \"users_*\", \"target_schema\": \"ml\", \"target_table\": \"users\"}], \"extractions\": [[\"merge\", []], [\"schema\", []], [\"users\", []]], \"mappings\": [], \"filters\": [], \"expressions\": []}'),
('b','{\"source\": \"b\", \"case_sensitive\": false, \"routes\": [{\"name\": \"merge\", \"schema_pattern\": \"l\", \"table_pattern\": \"orders_*\", \"target_schema\": \"ml\", \"target_table\": \"orders\"}, {\"name\": \"schema\", \"schema_pattern\": \"l\", \"table_pattern\": \"\", \"target_schema\": \"ml\", \"target_table\": \"\"}, {\"name\": \"users\", \"schema_pattern\": \"l\", \"table_pattern\": \"users_*\", \"target_schema\": \"ml\", \"target_table\": \"users\"}], \"extractions\": [[\"merge\", []], [\"schema\", []], [\"users\", []]], \"mappings\": [], \"filters\": [], \"expressions\": []}');
/*!40000 ALTER TABLE `locked_rules` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `locked_safe_mode`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `locked_safe_mode` (
  `source` varchar(64) NOT NULL,
  `end_file` varchar(255) NOT NULL,
  `end_offset` bigint(20) unsigned NOT NULL,
  PRIMARY KEY (`source`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `locked_safe_mode` WRITE;
/*!40000 ALTER TABLE `locked_safe_mode` DISABLE KEYS */;
/*!40000 ALTER TABLE `locked_safe_mode` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `locked_statement_gtid`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `locked_statement_gtid` (
  `source` varchar(64) NOT NULL,
  `place` bigint(20) NOT NULL,
  `gtid` varchar(128) NOT NULL,
  PRIMARY KEY (`source`,`place`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `locked_statement_gtid` WRITE;
/*!40000 ALTER TABLE `locked_statement_gtid` DISABLE KEYS */;
INSERT INTO `locked_statement_gtid` VALUES
('a',1099511630537,'0-4101-8'),
('a',1099511630579,'0-4101-8'),
('a',1099511630692,'0-4101-9'),
('a',1099511630734,'0-4101-9'),
('a',1099511630847,'0-4101-10'),
('a',1099511630889,'0-4101-10'),
('a',1099511631000,'0-4101-11'),
('a',1099511631042,'0-4101-11'),
('a',1099511631759,'0-4101-13'),
('a',1099511631801,'0-4101-13'),
('b',1099511629773,'0-4102-6'),
('b',1099511629815,'0-4102-6');
/*!40000 ALTER TABLE `locked_statement_gtid` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `locked_switch`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `locked_switch` (
  `id` tinyint(4) NOT NULL,
  `finished_at` bigint(20) NOT NULL,
  `frozen` longtext NOT NULL,
  `certificate` longtext NOT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `locked_switch` WRITE;
/*!40000 ALTER TABLE `locked_switch` DISABLE KEYS */;
/*!40000 ALTER TABLE `locked_switch` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `locked_tracked_key`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `locked_tracked_key` (
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `digest` binary(32) NOT NULL,
  `key_columns` longtext NOT NULL,
  `key_line` longblob NOT NULL,
  `times` bigint(20) NOT NULL,
  PRIMARY KEY (`target_schema`,`target_table`,`digest`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `locked_tracked_key` WRITE;
/*!40000 ALTER TABLE `locked_tracked_key` DISABLE KEYS */;
INSERT INTO `locked_tracked_key` VALUES
('ml','orders',0x39BD41855F26B5AED7E9B1A3B6B8B88F2C62B530B1D7AE51339C509E4C9601BE,'[\"id\"]',0x31303030303033,1);
/*!40000 ALTER TABLE `locked_tracked_key` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `locked_unvalidated`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `locked_unvalidated` (
  `number` int(11) NOT NULL,
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `source` varchar(64) NOT NULL,
  `schema_name` varchar(64) NOT NULL,
  `table_name` varchar(64) NOT NULL,
  `key_columns` longtext NOT NULL,
  `key_lines` longblob NOT NULL,
  PRIMARY KEY (`number`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `locked_unvalidated` WRITE;
/*!40000 ALTER TABLE `locked_unvalidated` DISABLE KEYS */;
/*!40000 ALTER TABLE `locked_unvalidated` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `locked_validation`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `locked_validation` (
  `id` bigint(20) NOT NULL AUTO_INCREMENT,
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `digest` binary(32) NOT NULL,
  `key_line` longblob NOT NULL,
  `kind` varchar(16) NOT NULL,
  `shard` varchar(255) NOT NULL,
  `detail` text NOT NULL,
  `state` varchar(16) NOT NULL,
  `found_at` bigint(20) NOT NULL,
  `corrections` int(11) NOT NULL DEFAULT 0,
  PRIMARY KEY (`id`),
  UNIQUE KEY `target_schema` (`target_schema`,`target_table`,`digest`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `locked_validation` WRITE;
/*!40000 ALTER TABLE `locked_validation` DISABLE KEYS */;
/*!40000 ALTER TABLE `locked_validation` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `locked_verification`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `locked_verification` (
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `verified_at` bigint(20) NOT NULL,
  `compared` bigint(20) NOT NULL,
  `differing` bigint(20) NOT NULL,
  `progress` longtext NOT NULL,
  PRIMARY KEY (`target_schema`,`target_table`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `locked_verification` WRITE;
/*!40000 ALTER TABLE `locked_verification` DISABLE KEYS */;
/*!40000 ALTER TABLE `locked_verification` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `locked_watermark`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `locked_watermark` (
  `source` varchar(64) NOT NULL,
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `bucket` smallint(6) NOT NULL,
  `version` int(11) NOT NULL,
  `transaction_key` bigint(20) NOT NULL,
  `ordinal` bigint(20) NOT NULL,
  `token` bigint(20) NOT NULL DEFAULT 0,
  `gtid` longtext DEFAULT NULL,
  `anchor` text DEFAULT NULL,
  PRIMARY KEY (`source`,`target_schema`,`target_table`,`bucket`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `locked_watermark` WRITE;
/*!40000 ALTER TABLE `locked_watermark` DISABLE KEYS */;
INSERT INTO `locked_watermark` VALUES
('a','ml','orders',-1,1,1099511633115,1,0,'0-4101-17',NULL),
('a','ml','orders',0,0,0,0,908800838001268930,NULL,NULL),
('a','ml','orders',1,1,1099511633115,1,908800838001268930,'0-4101-17','5339:1796069867:1418240573:binlog.000001'),
('a','ml','orders',2,0,0,0,908800838001268930,NULL,NULL),
('a','ml','orders',3,1,1099511633115,1,908800838001268930,'0-4101-17','5339:1796069867:1418240573:binlog.000001'),
('b','ml','orders',-1,1,1099511629928,1,0,'0-4102-7',NULL),
('b','ml','orders',0,0,0,0,908800838001268930,NULL,NULL),
('b','ml','orders',1,0,0,0,908800838001268930,NULL,NULL),
('b','ml','orders',2,0,0,0,908800838001268930,NULL,NULL),
('b','ml','orders',3,1,1099511629928,1,908800838001268930,'0-4102-7','2152:1796069867:2657443539:binlog.000001');
/*!40000 ALTER TABLE `locked_watermark` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `uncoordinated_checkpoint`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `uncoordinated_checkpoint` (
  `source` varchar(64) NOT NULL,
  `binlog_file` varchar(255) NOT NULL,
  `binlog_offset` bigint(20) unsigned NOT NULL,
  `gtid` longtext NOT NULL,
  `server_id` bigint(20) unsigned NOT NULL,
  `server_uuid` varchar(36) NOT NULL,
  `folds_names` tinyint(1) DEFAULT NULL,
  `anchor_file` varchar(255) DEFAULT NULL,
  `anchor_offset` bigint(20) unsigned DEFAULT NULL,
  `anchor_created` bigint(20) unsigned DEFAULT NULL,
  `anchor_fingerprint` bigint(20) unsigned DEFAULT NULL,
  `prepared` longtext NOT NULL,
  `key_buckets` smallint(6) NOT NULL,
  `shard_mode` varchar(16) NOT NULL,
  `open_items` int(11) NOT NULL,
  `applied` varchar(280) NOT NULL,
  `begin_again` tinyint(4) NOT NULL DEFAULT 0,
  `saved_at` timestamp NOT NULL DEFAULT current_timestamp() ON UPDATE current_timestamp(),
  PRIMARY KEY (`source`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `uncoordinated_checkpoint` WRITE;
/*!40000 ALTER TABLE `uncoordinated_checkpoint` DISABLE KEYS */;
INSERT INTO `uncoordinated_checkpoint` VALUES
('a','binlog.000001',7551,'0-4101-27',4101,'',0,'binlog.000001',7316,1796069867,77054132,'',4,'',0,'binlog.000001:7551',0,'2026-11-30 20:18:05'),
('b','binlog.000001',3542,'0-4102-13',4102,'',0,'binlog.000001',3292,1796069867,3464117338,'',4,'',0,'binlog.000001:3542',0,'2026-11-30 20:18:05');
/*!40000 ALTER TABLE `uncoordinated_checkpoint` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `uncoordinated_chunk`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `uncoordinated_chunk` (
  `source` varchar(64) NOT NULL,
  `schema_name` varchar(64) NOT NULL,
  `table_name` varchar(64) NOT NULL,
  `number` int(11) NOT NULL,
  `lower_key` longtext DEFAULT NULL,
  `upper_key` longtext DEFAULT NULL,
  `state` tinyint(4) NOT NULL,
  `row_count` bigint(20) NOT NULL,
  `byte_count` bigint(20) NOT NULL,
  `read_at` bigint(20) NOT NULL,
  `known_to` bigint(20) NOT NULL DEFAULT 0,
  `read_by` bigint(20) NOT NULL DEFAULT 0,
  `added_rows` bigint(20) NOT NULL DEFAULT 0,
  `token` bigint(20) NOT NULL,
  PRIMARY KEY (`source`,`schema_name`,`table_name`,`number`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `uncoordinated_chunk` WRITE;
/*!40000 ALTER TABLE `uncoordinated_chunk` DISABLE KEYS */;
/*!40000 ALTER TABLE `uncoordinated_chunk` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `uncoordinated_copy`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `uncoordinated_copy` (
  `source` varchar(64) NOT NULL,
  `done` tinyint(4) NOT NULL,
  `end_file` varchar(255) NOT NULL,
  `end_offset` bigint(20) unsigned NOT NULL,
  PRIMARY KEY (`source`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `uncoordinated_copy` WRITE;
/*!40000 ALTER TABLE `uncoordinated_copy` DISABLE KEYS */;
/*!40000 ALTER TABLE `uncoordinated_copy` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `uncoordinated_copy_target`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `uncoordinated_copy_target` (
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `key_lost` tinyint(4) NOT NULL,
  `forgotten_rows` bigint(20) NOT NULL,
  PRIMARY KEY (`target_schema`,`target_table`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `uncoordinated_copy_target` WRITE;
/*!40000 ALTER TABLE `uncoordinated_copy_target` DISABLE KEYS */;
/*!40000 ALTER TABLE `uncoordinated_copy_target` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `uncoordinated_ddl`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `uncoordinated_ddl` (
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `version` int(11) NOT NULL,
  `statement` longtext NOT NULL,
  `owner` varchar(64) NOT NULL,
  `schema_name` varchar(64) NOT NULL,
  `table_name` varchar(64) NOT NULL,
  `transaction_key` bigint(20) NOT NULL,
  `state` varchar(16) NOT NULL,
  `fingerprint` varchar(64) NOT NULL,
  `decision` longtext NOT NULL,
  `entry` longtext NOT NULL,
  `saved_at` timestamp NOT NULL DEFAULT current_timestamp() ON UPDATE current_timestamp(),
  PRIMARY KEY (`target_schema`,`target_table`,`version`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `uncoordinated_ddl` WRITE;
/*!40000 ALTER TABLE `uncoordinated_ddl` DISABLE KEYS */;
INSERT INTO `uncoordinated_ddl` VALUES
('mu','orders',1,'','a','u','orders_1',0,'done','','','{\"kind\":\"member\",\"member\":{\"source\":\"a\",\"name\":{\"schema\":\"u\",\"table\":\"orders_1\"}},\"standing\":{\"taken\":{\"schema\":\"u\",\"name\":\"orders_1\",\"columns\":[{\"name\":\"id\",\"type\":\"bigint(20)\",\"nullable\":false},{\"name\":\"name\",\"type\":\"varchar(40)\",\"charset\":\"utf8mb4\",\"collation\":\"utf8mb4_general_ci\"},{\"name\":\"n\",\"type\":\"int(11)\"}],\"keys\":[{\"name\":\"PRIMARY\",\"columns\":[\"id\"]}],\"create_sql\":\"CREATE TABLE `orders_1` (\\n  `id` bigint(20) NOT NULL,\\n  `name` varchar(40) DEFAULT NULL,\\n  `n` int(11) DEFAULT NULL,\\n  PRIMARY KEY (`id`)\\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci\"}},\"fills\":{\"name\":{\"sql\":\"NULL\",\"text\":\"NULL\"},\"id\":{\"sql\":\"0\",\"text\":\"0\"},\"n\":{\"sql\":\"NULL\",\"text\":\"NULL\"}}}','2026-11-30 20:18:04'),
('mu','orders',2,'','a','u','orders_2',0,'done','','','{\"kind\":\"member\",\"member\":{\"source\":\"a\",\"name\":{\"schema\":\"u\",\"table\":\"orders_2\"}},\"standing\":{\"taken\":{\"schema\":\"u\",\"name\":\"orders_2\",\"columns\":[{\"name\":\"id\",\"type\":\"bigint(20)\",\"nullable\":false},{\"name\":\"name\",\"type\":\"varchar(40)\",\"charset\":\"utf8mb4\",\"collation\":\"utf8mb4_general_ci\"},{\"name\":\"n\",\"type\":\"int(11)\"}],\"keys\":[{\"name\":\"PRIMARY\",\"columns\":[\"id\"]}],\"create_sql\":\"CREATE TABLE `orders_2` (\\n  `id` bigint(20) NOT NULL,\\n  `name` varchar(40) DEFAULT NULL,\\n  `n` int(11) DEFAULT NULL,\\n  PRIMARY KEY (`id`)\\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci\"}},\"fills\":{\"name\":{\"sql\":\"NULL\",\"text\":\"NULL\"},\"id\":{\"sql\":\"0\",\"text\":\"0\"},\"n\":{\"sql\":\"NULL\",\"text\":\"NULL\"}}}','2026-11-30 20:18:04'),
('mu','orders',3,'','b','u','orders_1',0,'done','','','{\"kind\":\"member\",\"member\":{\"source\":\"b\",\"name\":{\"schema\":\"u\",\"table\":\"orders_1\"}},\"standing\":{\"taken\":{\"schema\":\"u\",\"name\":\"orders_1\",\"columns\":[{\"name\":\"id\",\"type\":\"bigint(20)\",\"nullable\":false},{\"name\":\"name\",\"type\":\"varchar(40)\",\"charset\":\"utf8mb4\",\"collation\":\"utf8mb4_general_ci\"},{\"name\":\"n\",\"type\":\"int(11)\"}],\"keys\":[{\"name\":\"PRIMARY\",\"columns\":[\"id\"]}],\"create_sql\":\"CREATE TABLE `orders_1` (\\n  `id` bigint(20) NOT NULL,\\n  `name` varchar(40) DEFAULT NULL,\\n  `n` int(11) DEFAULT NULL,\\n  PRIMARY KEY (`id`)\\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci\"}},\"fills\":{\"name\":{\"sql\":\"NULL\",\"text\":\"NULL\"},\"id\":{\"sql\":\"0\",\"text\":\"0\"},\"n\":{\"sql\":\"NULL\",\"text\":\"NULL\"}}}','2026-11-30 20:18:04'),
('mu','orders',4,'ALTER TABLE `mu`.`orders` ADD c INT DEFAULT 3','a','u','orders_1',1099511634270,'done','65a8faf8f6203083e5232d4e3588e6f8','','{\"kind\":\"taken\",\"member\":{\"source\":\"a\",\"name\":{\"schema\":\"u\",\"table\":\"orders_1\"}},\"standing\":{\"taken\":{\"schema\":\"u\",\"name\":\"orders_1\",\"columns\":[{\"name\":\"id\",\"type\":\"bigint(20)\",\"nullable\":false},{\"name\":\"name\",\"type\":\"varchar(40)\",\"charset\":\"utf8mb4\",\"collation\":\"utf8mb4_general_ci\"},{\"name\":\"n\",\"type\":\"int(11)\"},{\"name\":\"c\",\"type\":\"int(11)\",\"learned\":true}],\"keys\":[{\"name\":\"PRIMARY\",\"columns\":[\"id\"]}],\"create_sql\":\"CREATE TABLE `orders_1` (\\n  `id` bigint(20) NOT NULL,\\n  `name` varchar(40) DEFAULT NULL,\\n  `n` int(11) DEFAULT NULL,\\n  `c` int(11) DEFAULT 3,\\n  PRIMARY KEY (`id`)\\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci\"}},\"fills\":{\"name\":{\"sql\":\"NULL\",\"text\":\"NULL\"},\"id\":{\"sql\":\"0\",\"text\":\"0\"},\"n\":{\"sql\":\"NULL\",\"text\":\"NULL\"},\"c\":{\"sql\":\"3\",\"text\":\"3\"}},\"run\":[\"ALTER TABLE `mu`.`orders` ADD c INT DEFAULT 3\"],\"timestamp\":1796069884,\"context\":{\"sql_mode\":1411383296,\"time_zone\":\"+00:00\",\"collation_ids\":[45,45,45],\"explicit_timestamp_defaults\":true,\"mariadb\":true,\"connection_collation\":\"utf8mb4_general_ci\",\"server_collation\":\"utf8mb4_general_ci\"}}','2026-11-30 20:18:05'),
('mu','orders',5,'ALTER TABLE `mu`.`orders` ADD c INT DEFAULT 3','b','u','orders_1',1099511630913,'done','','','{\"kind\":\"taken\",\"member\":{\"source\":\"b\",\"name\":{\"schema\":\"u\",\"table\":\"orders_1\"}},\"standing\":{\"taken\":{\"schema\":\"u\",\"name\":\"orders_1\",\"columns\":[{\"name\":\"id\",\"type\":\"bigint(20)\",\"nullable\":false},{\"name\":\"name\",\"type\":\"varchar(40)\",\"charset\":\"utf8mb4\",\"collation\":\"utf8mb4_general_ci\"},{\"name\":\"n\",\"type\":\"int(11)\"},{\"name\":\"c\",\"type\":\"int(11)\",\"learned\":true}],\"keys\":[{\"name\":\"PRIMARY\",\"columns\":[\"id\"]}],\"create_sql\":\"CREATE TABLE `orders_1` (\\n  `id` bigint(20) NOT NULL,\\n  `name` varchar(40) DEFAULT NULL,\\n  `n` int(11) DEFAULT NULL,\\n  `c` int(11) DEFAULT 3,\\n  PRIMARY KEY (`id`)\\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci\"}},\"fills\":{\"name\":{\"sql\":\"NULL\",\"text\":\"NULL\"},\"id\":{\"sql\":\"0\",\"text\":\"0\"},\"n\":{\"sql\":\"NULL\",\"text\":\"NULL\"},\"c\":{\"sql\":\"3\",\"text\":\"3\"}}}','2026-11-30 20:18:05'),
('mu','orders',6,'ALTER TABLE `mu`.`orders` MODIFY n BIGINT, ADD e INT','a','u','orders_1',1099511634675,'done','1161aa32d2a76df8252a39a7b1d7d021','','{\"kind\":\"taken\",\"member\":{\"source\":\"a\",\"name\":{\"schema\":\"u\",\"table\":\"orders_1\"}},\"standing\":{\"taken\":{\"schema\":\"u\",\"name\":\"orders_1\",\"columns\":[{\"name\":\"id\",\"type\":\"bigint(20)\",\"nullable\":false},{\"name\":\"name\",\"type\":\"varchar(40)\",\"charset\":\"utf8mb4\",\"collation\":\"utf8mb4_general_ci\"},{\"name\":\"n\",\"type\":\"bigint(20)\",\"learned\":true},{\"name\":\"c\",\"type\":\"int(11)\",\"learned\":true},{\"name\":\"e\",\"type\":\"int(11)\",\"learned\":true}],\"keys\":[{\"name\":\"PRIMARY\",\"columns\":[\"id\"]}],\"create_sql\":\"CREATE TABLE `orders_1` (\\n  `id` bigint(20) NOT NULL,\\n  `name` varchar(40) DEFAULT NULL,\\n  `n` bigint(20) DEFAULT NULL,\\n  `c` int(11) DEFAULT 3,\\n  `e` int(11) DEFAULT NULL,\\n  PRIMARY KEY (`id`)\\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci\"}},\"fills\":{\"name\":{\"sql\":\"NULL\",\"text\":\"NULL\"},\"id\":{\"sql\":\"0\",\"text\":\"0\"},\"n\":{\"sql\":\"NULL\",\"text\":\"NULL\"},\"c\":{\"sql\":\"3\",\"text\":\"3\"},\"e\":{\"sql\":\"NULL\",\"text\":\"NULL\"}},\"run\":[\"ALTER TABLE `mu`.`orders` MODIFY n BIGINT, ADD e INT\"],\"timestamp\":1796069884,\"context\":{\"sql_mode\":1411383296,\"time_zone\":\"+00:00\",\"collation_ids\":[45,45,45],\"explicit_timestamp_defaults\":true,\"mariadb\":true,\"connection_collation\":\"utf8mb4_general_ci\",\"server_collation\":\"utf8mb4_general_ci\"}}','2026-11-30 20:18:05'),
('mu','users',1,'','a','u','users_1',0,'done','','','{\"kind\":\"member\",\"member\":{\"source\":\"a\",\"name\":{\"schema\":\"u\",\"table\":\"users_1\"}},\"standing\":{\"taken\":{\"schema\":\"u\",\"name\":\"users_1\",\"columns\":[{\"name\":\"id\",\"type\":\"bigint(20)\",\"nullable\":false},{\"name\":\"name\",\"type\":\"varchar(40)\",\"charset\":\"utf8mb4\",\"collation\":\"utf8mb4_general_ci\"},{\"name\":\"n\",\"type\":\"int(11)\"}],\"keys\":[{\"name\":\"PRIMARY\",\"columns\":[\"id\"]}],\"create_sql\":\"CREATE TABLE `users_1` (\\n  `id` bigint(20) NOT NULL,\\n  `name` varchar(40) DEFAULT NULL,\\n  `n` int(11) DEFAULT NULL,\\n  PRIMARY KEY (`id`)\\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci\"}},\"fills\":{\"name\":{\"sql\":\"NULL\",\"text\":\"NULL\"},\"id\":{\"sql\":\"0\",\"text\":\"0\"},\"n\":{\"sql\":\"NULL\",\"text\":\"NULL\"}}}','2026-11-30 20:18:04'),
('mu','users',2,'','b','u','users_1',0,'done','','','{\"kind\":\"member\",\"member\":{\"source\":\"b\",\"name\":{\"schema\":\"u\",\"table\":\"users_1\"}},\"standing\":{\"taken\":{\"schema\":\"u\",\"name\":\"users_1\",\"columns\":[{\"name\":\"id\",\"type\":\"bigint(20)\",\"nullable\":false},{\"name\":\"name\",\"type\":\"varchar(40)\",\"charset\":\"utf8mb4\",\"collation\":\"utf8mb4_general_ci\"},{\"name\":\"n\",\"type\":\"int(11)\"}],\"keys\":[{\"name\":\"PRIMARY\",\"columns\":[\"id\"]}],\"create_sql\":\"CREATE TABLE `users_1` (\\n  `id` bigint(20) NOT NULL,\\n  `name` varchar(40) DEFAULT NULL,\\n  `n` int(11) DEFAULT NULL,\\n  PRIMARY KEY (`id`)\\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci\"}},\"fills\":{\"name\":{\"sql\":\"NULL\",\"text\":\"NULL\"},\"id\":{\"sql\":\"0\",\"text\":\"0\"},\"n\":{\"sql\":\"NULL\",\"text\":\"NULL\"}}}','2026-11-30 20:18:04');
/*!40000 ALTER TABLE `uncoordinated_ddl` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `uncoordinated_ddl_override`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `uncoordinated_ddl_override` (
  `source` varchar(64) NOT NULL,
  `position_key` bigint(20) NOT NULL,
  `binlog_file` varchar(255) NOT NULL,
  `binlog_offset` bigint(20) unsigned NOT NULL,
  `action` varchar(16) NOT NULL,
  `statements` longtext NOT NULL,
  PRIMARY KEY (`source`,`position_key`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `uncoordinated_ddl_override` WRITE;
/*!40000 ALTER TABLE `uncoordinated_ddl_override` DISABLE KEYS */;
/*!40000 ALTER TABLE `uncoordinated_ddl_override` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `uncoordinated_declared`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `uncoordinated_declared` (
  `source` varchar(64) NOT NULL,
  `schema_name` varchar(64) NOT NULL,
  `table_name` varchar(64) NOT NULL,
  `since` bigint(20) NOT NULL,
  `structure` longtext NOT NULL,
  PRIMARY KEY (`source`,`schema_name`,`table_name`,`since`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `uncoordinated_declared` WRITE;
/*!40000 ALTER TABLE `uncoordinated_declared` DISABLE KEYS */;
/*!40000 ALTER TABLE `uncoordinated_declared` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `uncoordinated_failover`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `uncoordinated_failover` (
  `source` varchar(64) NOT NULL,
  `number` int(11) NOT NULL,
  `server_id` bigint(20) unsigned NOT NULL,
  `server_uuid` varchar(36) NOT NULL,
  `binlog_file` varchar(255) NOT NULL,
  `binlog_offset` bigint(20) unsigned NOT NULL,
  `gtid` longtext NOT NULL,
  `logged` longtext NOT NULL,
  `saved_at` timestamp NOT NULL DEFAULT current_timestamp(),
  PRIMARY KEY (`source`,`number`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `uncoordinated_failover` WRITE;
/*!40000 ALTER TABLE `uncoordinated_failover` DISABLE KEYS */;
/*!40000 ALTER TABLE `uncoordinated_failover` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `uncoordinated_group`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `uncoordinated_group` (
  `source` varchar(64) NOT NULL,
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `state` longtext NOT NULL,
  PRIMARY KEY (`source`,`target_schema`,`target_table`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `uncoordinated_group` WRITE;
/*!40000 ALTER TABLE `uncoordinated_group` DISABLE KEYS */;
INSERT INTO `uncoordinated_group` VALUES
('a','mu','orders','{\"base\":0,\"members\":[],\"dropped\":[]}'),
('b','mu','orders','{\"base\":0,\"members\":[],\"dropped\":[]}');
/*!40000 ALTER TABLE `uncoordinated_group` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `uncoordinated_held`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `uncoordinated_held` (
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `all_of` tinyint(1) NOT NULL,
  `shards` longtext NOT NULL,
  `reason` varchar(1000) NOT NULL,
  PRIMARY KEY (`target_schema`,`target_table`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `uncoordinated_held` WRITE;
/*!40000 ALTER TABLE `uncoordinated_held` DISABLE KEYS */;
/*!40000 ALTER TABLE `uncoordinated_held` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `uncoordinated_late_cascade`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `uncoordinated_late_cascade` (
  `source` varchar(255) NOT NULL,
  `member_schema` varchar(64) NOT NULL,
  `member_table` varchar(64) NOT NULL,
  `transaction_key` bigint(20) NOT NULL,
  `ordinal` bigint(20) NOT NULL,
  `parent_schema` varchar(64) NOT NULL,
  `parent_table` varchar(64) NOT NULL,
  `number` int(11) NOT NULL,
  `columns` longtext NOT NULL,
  `changes` longtext NOT NULL,
  PRIMARY KEY (`source`,`member_schema`,`member_table`,`transaction_key`,`ordinal`,`parent_schema`,`parent_table`,`number`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `uncoordinated_late_cascade` WRITE;
/*!40000 ALTER TABLE `uncoordinated_late_cascade` DISABLE KEYS */;
/*!40000 ALTER TABLE `uncoordinated_late_cascade` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `uncoordinated_later_copy`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `uncoordinated_later_copy` (
  `source` varchar(64) NOT NULL,
  `schema_name` varchar(64) NOT NULL,
  `table_name` varchar(64) NOT NULL,
  `place` bigint(20) NOT NULL,
  `structure` longtext NOT NULL,
  PRIMARY KEY (`source`,`schema_name`,`table_name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `uncoordinated_later_copy` WRITE;
/*!40000 ALTER TABLE `uncoordinated_later_copy` DISABLE KEYS */;
/*!40000 ALTER TABLE `uncoordinated_later_copy` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `uncoordinated_lease`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `uncoordinated_lease` (
  `id` tinyint(4) NOT NULL,
  `token` bigint(20) NOT NULL,
  `revision` bigint(20) NOT NULL,
  `host` varchar(255) NOT NULL,
  `process` bigint(20) NOT NULL,
  `machine` varchar(128) NOT NULL,
  `begun` varchar(64) NOT NULL,
  `taken_at` datetime(6) NOT NULL,
  `expires_at` datetime(6) NOT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `uncoordinated_lease` WRITE;
/*!40000 ALTER TABLE `uncoordinated_lease` DISABLE KEYS */;
INSERT INTO `uncoordinated_lease` VALUES
(1,2500460718140292292,20,'vm',30157,'3f433f22-1f47-4338-9340-6c4720624f6d pid:[4026531836]','4517729','2026-11-30 20:18:01.911295','2026-11-30 20:18:06.889013');
/*!40000 ALTER TABLE `uncoordinated_lease` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `uncoordinated_member`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `uncoordinated_member` (
  `source` varchar(64) NOT NULL,
  `schema_name` varchar(64) NOT NULL,
  `table_name` varchar(64) NOT NULL,
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `version` int(11) NOT NULL,
  `since` bigint(20) NOT NULL,
  `structure` longtext NOT NULL,
  `provenance` varchar(16) NOT NULL,
  `doubt` text NOT NULL,
  `copy_state` tinyint(4) NOT NULL DEFAULT 0,
  PRIMARY KEY (`source`,`schema_name`,`table_name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `uncoordinated_member` WRITE;
/*!40000 ALTER TABLE `uncoordinated_member` DISABLE KEYS */;
INSERT INTO `uncoordinated_member` VALUES
('a','u','orders_1','mu','orders',0,1099511634675,'{\"schema\": \"u\", \"name\": \"orders_1\", \"columns\": [{\"name\": \"id\", \"type\": \"bigint(20)\", \"charset\": \"\", \"collation\": \"\", \"nullable\": false, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}, {\"name\": \"name\", \"type\": \"varchar(40)\", \"charset\": \"utf8mb4\", \"collation\": \"utf8mb4_general_ci\", \"nullable\": true, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}, {\"name\": \"n\", \"type\": \"bigint(20)\", \"charset\": \"\", \"collation\": \"\", \"nullable\": true, \"generated\": false, \"auto_increment\": false, \"learned\": true, \"withheld\": false, \"fill\": \"\"}, {\"name\": \"c\", \"type\": \"int(11)\", \"charset\": \"\", \"collation\": \"\", \"nullable\": true, \"generated\": false, \"auto_increment\": false, \"learned\": true, \"withheld\": false, \"fill\": \"\"}, {\"name\": \"e\", \"type\": \"int(11)\", \"charset\": \"\", \"collation\": \"\", \"nullable\": true, \"generated\": false, \"auto_increment\": false, \"learned\": true, \"withheld\": false, \"fill\": \"\"}], \"keys\": [{\"name\": \"PRIMARY\", \"columns\": [\"id\"], \"nullable\": false, \"prefix\": false}], \"create_sql\": \"CREATE TABLE `orders_1` (\\n  `id` bigint(20) NOT NULL,\\n  `name` varchar(40) DEFAULT NULL,\\n  `n` bigint(20) DEFAULT NULL,\\n  `c` int(11) DEFAULT 3,\\n  `e` int(11) DEFAULT NULL,\\n  PRIMARY KEY (`id`)\\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci\"}','learned','',0),
('a','u','orders_2','mu','orders',0,0,'{\"schema\": \"u\", \"name\": \"orders_2\", \"columns\": [{\"name\": \"id\", \"type\": \"bigint(20)\", \"charset\": \"\", \"collation\": \"\", \"nullable\": false, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}, {\"name\": \"name\", \"type\": \"varchar(40)\", \"charset\": \"utf8mb4\", \"collation\": \"utf8mb4_general_ci\", \"nullable\": true, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}, {\"name\": \"n\", \"type\": \"int(11)\", \"charset\": \"\", \"collation\": \"\", \"nullable\": true, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}], \"keys\": [{\"name\": \"PRIMARY\", \"columns\": [\"id\"], \"nullable\": false, \"prefix\": false}], \"create_sql\": \"CREATE TABLE `orders_2` (\\n  `id` bigint(20) NOT NULL,\\n  `name` varchar(40) DEFAULT NULL,\\n  `n` int(11) DEFAULT NULL,\\n  PRIMARY KEY (`id`)\\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci\"}','read','',0),
('a','u','users_1','mu','users',0,0,'{\"schema\": \"u\", \"name\": \"users_1\", \"columns\": [{\"name\": \"id\", \"type\": \"bigint(20)\", \"charset\": \"\", \"collation\": \"\", \"nullable\": false, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}, {\"name\": \"name\", \"type\": \"varchar(40)\", \"charset\": \"utf8mb4\", \"collation\": \"utf8mb4_general_ci\", \"nullable\": true, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}, {\"name\": \"n\", \"type\": \"int(11)\", \"charset\": \"\", \"collation\": \"\", \"nullable\": true, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}], \"keys\": [{\"name\": \"PRIMARY\", \"columns\": [\"id\"], \"nullable\": false, \"prefix\": false}], \"create_sql\": \"CREATE TABLE `users_1` (\\n  `id` bigint(20) NOT NULL,\\n  `name` varchar(40) DEFAULT NULL,\\n  `n` int(11) DEFAULT NULL,\\n  PRIMARY KEY (`id`)\\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci\"}','read','',0),
('b','u','orders_1','mu','orders',0,1099511630913,'{\"schema\": \"u\", \"name\": \"orders_1\", \"columns\": [{\"name\": \"id\", \"type\": \"bigint(20)\", \"charset\": \"\", \"collation\": \"\", \"nullable\": false, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}, {\"name\": \"name\", \"type\": \"varchar(40)\", \"charset\": \"utf8mb4\", \"collation\": \"utf8mb4_general_ci\", \"nullable\": true, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}, {\"name\": \"n\", \"type\": \"int(11)\", \"charset\": \"\", \"collation\": \"\", \"nullable\": true, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}, {\"name\": \"c\", \"type\": \"int(11)\", \"charset\": \"\", \"collation\": \"\", \"nullable\": true, \"generated\": false, \"auto_increment\": false, \"learned\": true, \"withheld\": false, \"fill\": \"\"}], \"keys\": [{\"name\": \"PRIMARY\", \"columns\": [\"id\"], \"nullable\": false, \"prefix\": false}], \"create_sql\": \"CREATE TABLE `orders_1` (\\n  `id` bigint(20) NOT NULL,\\n  `name` varchar(40) DEFAULT NULL,\\n  `n` int(11) DEFAULT NULL,\\n  `c` int(11) DEFAULT 3,\\n  PRIMARY KEY (`id`)\\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci\"}','learned','',0),
('b','u','users_1','mu','users',0,0,'{\"schema\": \"u\", \"name\": \"users_1\", \"columns\": [{\"name\": \"id\", \"type\": \"bigint(20)\", \"charset\": \"\", \"collation\": \"\", \"nullable\": false, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}, {\"name\": \"name\", \"type\": \"varchar(40)\", \"charset\": \"utf8mb4\", \"collation\": \"utf8mb4_general_ci\", \"nullable\": true, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}, {\"name\": \"n\", \"type\": \"int(11)\", \"charset\": \"\", \"collation\": \"\", \"nullable\": true, \"generated\": false, \"auto_increment\": false, \"learned\": false, \"withheld\": false, \"fill\": \"\"}], \"keys\": [{\"name\": \"PRIMARY\", \"columns\": [\"id\"], \"nullable\": false, \"prefix\": false}], \"create_sql\": \"CREATE TABLE `users_1` (\\n  `id` bigint(20) NOT NULL,\\n  `name` varchar(40) DEFAULT NULL,\\n  `n` int(11) DEFAULT NULL,\\n  PRIMARY KEY (`id`)\\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci\"}','read','',0);
/*!40000 ALTER TABLE `uncoordinated_member` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `uncoordinated_moved_shard`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `uncoordinated_moved_shard` (
  `number` int(11) NOT NULL,
  `item` int(11) NOT NULL,
  `source` varchar(64) NOT NULL,
  `schema_name` varchar(64) NOT NULL,
  `table_name` varchar(64) NOT NULL,
  `place` bigint(20) NOT NULL,
  `former_schema` varchar(64) NOT NULL,
  `former_table` varchar(64) NOT NULL,
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `version` int(11) NOT NULL,
  `state` varchar(16) NOT NULL,
  PRIMARY KEY (`number`,`item`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `uncoordinated_moved_shard` WRITE;
/*!40000 ALTER TABLE `uncoordinated_moved_shard` DISABLE KEYS */;
/*!40000 ALTER TABLE `uncoordinated_moved_shard` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `uncoordinated_onlineddl`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `uncoordinated_onlineddl` (
  `source` varchar(64) NOT NULL,
  `ghost_schema` varchar(64) NOT NULL,
  `ghost_table` varchar(64) NOT NULL,
  `place` bigint(20) NOT NULL,
  `act` varchar(16) NOT NULL,
  `ddl` longtext NOT NULL,
  `default_schema` varchar(64) NOT NULL,
  `moment` bigint(20) NOT NULL,
  `context` longtext NOT NULL,
  PRIMARY KEY (`source`,`ghost_schema`,`ghost_table`,`place`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `uncoordinated_onlineddl` WRITE;
/*!40000 ALTER TABLE `uncoordinated_onlineddl` DISABLE KEYS */;
/*!40000 ALTER TABLE `uncoordinated_onlineddl` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `uncoordinated_reconciliation`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `uncoordinated_reconciliation` (
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `condition_digest` char(64) NOT NULL,
  `row_condition` longtext NOT NULL,
  `column_names` longtext NOT NULL,
  `asked` bigint(20) NOT NULL,
  `begun` bigint(20) NOT NULL,
  `corrected` bigint(20) NOT NULL,
  `progress` longtext NOT NULL,
  `queued_at` bigint(20) NOT NULL,
  `safe_sources` longtext NOT NULL,
  PRIMARY KEY (`target_schema`,`target_table`,`condition_digest`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `uncoordinated_reconciliation` WRITE;
/*!40000 ALTER TABLE `uncoordinated_reconciliation` DISABLE KEYS */;
/*!40000 ALTER TABLE `uncoordinated_reconciliation` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `uncoordinated_retired`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `uncoordinated_retired` (
  `source` varchar(64) NOT NULL,
  `schema_name` varchar(64) NOT NULL,
  `table_name` varchar(64) NOT NULL,
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `place` bigint(20) NOT NULL,
  `retired_at` bigint(20) NOT NULL,
  PRIMARY KEY (`source`,`schema_name`,`table_name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `uncoordinated_retired` WRITE;
/*!40000 ALTER TABLE `uncoordinated_retired` DISABLE KEYS */;
/*!40000 ALTER TABLE `uncoordinated_retired` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `uncoordinated_row_owner`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `uncoordinated_row_owner` (
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `source` varchar(64) NOT NULL,
  `schema_name` varchar(64) NOT NULL,
  `table_name` varchar(64) NOT NULL,
  `ended` tinyint(1) NOT NULL,
  `marks` text NOT NULL,
  PRIMARY KEY (`target_schema`,`target_table`,`source`,`schema_name`,`table_name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `uncoordinated_row_owner` WRITE;
/*!40000 ALTER TABLE `uncoordinated_row_owner` DISABLE KEYS */;
INSERT INTO `uncoordinated_row_owner` VALUES
('mu','orders','','','',0,''),
('mu','orders','a','u','orders_1',0,''),
('mu','orders','a','u','orders_2',0,''),
('mu','orders','b','u','orders_1',0,''),
('mu','users','','','',0,''),
('mu','users','a','u','users_1',0,''),
('mu','users','b','u','users_1',0,'');
/*!40000 ALTER TABLE `uncoordinated_row_owner` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `uncoordinated_rules`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `uncoordinated_rules` (
  `source` varchar(64) NOT NULL,
  `rules` longtext NOT NULL,
  PRIMARY KEY (`source`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `uncoordinated_rules` WRITE;
/*!40000 ALTER TABLE `uncoordinated_rules` DISABLE KEYS */;
INSERT INTO `uncoordinated_rules` VALUES
('a','{\"source\": \"a\", \"case_sensitive\": false, \"routes\": [{\"name\": \"merge\", \"schema_pattern\": \"u\", \"table_pattern\": \"orders_*\", \"target_schema\": \"mu\", \"target_table\": \"orders\"}, {\"name\": \"schema\", \"schema_pattern\": \"u\", \"table_pattern\": \"\", \"target_schema\": \"mu\", \"target_table\": \"\"}, {\"name\": \"users\", \"schema_pattern\": \"u\", \"table_pattern\": \"users_*\", \"target_schema\": \"mu\", \"target_table\": \"users\"}], \"extractions\": [[\"merge\", []], [\"schema\", []], [\"users\", []]], \"mappings\": [], \"filters\": [], \"expressions\": []}'),
('b','{\"source\": \"b\", \"case_sensitive\": false, \"routes\": [{\"name\": \"merge\", \"schema_pattern\": \"u\", \"table_pattern\": \"orders_*\", \"target_schema\": \"mu\", \"target_table\": \"orders\"}, {\"name\": \"schema\", \"schema_pattern\": \"u\", \"table_pattern\": \"\", \"target_schema\": \"mu\", \"target_table\": \"\"}, {\"name\": \"users\", \"schema_pattern\": \"u\", \"table_pattern\": \"users_*\", \"target_schema\": \"mu\", \"target_table\": \"users\"}], \"extractions\": [[\"merge\", []], [\"schema\", []], [\"users\", []]], \"mappings\": [], \"filters\": [], \"expressions\": []}');
/*!40000 ALTER TABLE `uncoordinated_rules` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `uncoordinated_safe_mode`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `uncoordinated_safe_mode` (
  `source` varchar(64) NOT NULL,
  `end_file` varchar(255) NOT NULL,
  `end_offset` bigint(20) unsigned NOT NULL,
  PRIMARY KEY (`source`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `uncoordinated_safe_mode` WRITE;
/*!40000 ALTER TABLE `uncoordinated_safe_mode` DISABLE KEYS */;
/*!40000 ALTER TABLE `uncoordinated_safe_mode` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `uncoordinated_statement_gtid`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `uncoordinated_statement_gtid` (
  `source` varchar(64) NOT NULL,
  `place` bigint(20) NOT NULL,
  `gtid` varchar(128) NOT NULL,
  PRIMARY KEY (`source`,`place`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `uncoordinated_statement_gtid` WRITE;
/*!40000 ALTER TABLE `uncoordinated_statement_gtid` DISABLE KEYS */;
INSERT INTO `uncoordinated_statement_gtid` VALUES
('a',1099511634270,'0-4101-23'),
('a',1099511634312,'0-4101-23'),
('a',1099511634675,'0-4101-25'),
('a',1099511634717,'0-4101-25'),
('b',1099511630913,'0-4102-12'),
('b',1099511630955,'0-4102-12');
/*!40000 ALTER TABLE `uncoordinated_statement_gtid` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `uncoordinated_switch`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `uncoordinated_switch` (
  `id` tinyint(4) NOT NULL,
  `finished_at` bigint(20) NOT NULL,
  `frozen` longtext NOT NULL,
  `certificate` longtext NOT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `uncoordinated_switch` WRITE;
/*!40000 ALTER TABLE `uncoordinated_switch` DISABLE KEYS */;
/*!40000 ALTER TABLE `uncoordinated_switch` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `uncoordinated_tracked_key`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `uncoordinated_tracked_key` (
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `digest` binary(32) NOT NULL,
  `key_columns` longtext NOT NULL,
  `key_line` longblob NOT NULL,
  `times` bigint(20) NOT NULL,
  PRIMARY KEY (`target_schema`,`target_table`,`digest`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `uncoordinated_tracked_key` WRITE;
/*!40000 ALTER TABLE `uncoordinated_tracked_key` DISABLE KEYS */;
/*!40000 ALTER TABLE `uncoordinated_tracked_key` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `uncoordinated_unvalidated`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `uncoordinated_unvalidated` (
  `number` int(11) NOT NULL,
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `source` varchar(64) NOT NULL,
  `schema_name` varchar(64) NOT NULL,
  `table_name` varchar(64) NOT NULL,
  `key_columns` longtext NOT NULL,
  `key_lines` longblob NOT NULL,
  PRIMARY KEY (`number`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `uncoordinated_unvalidated` WRITE;
/*!40000 ALTER TABLE `uncoordinated_unvalidated` DISABLE KEYS */;
/*!40000 ALTER TABLE `uncoordinated_unvalidated` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `uncoordinated_validation`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `uncoordinated_validation` (
  `id` bigint(20) NOT NULL AUTO_INCREMENT,
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `digest` binary(32) NOT NULL,
  `key_line` longblob NOT NULL,
  `kind` varchar(16) NOT NULL,
  `shard` varchar(255) NOT NULL,
  `detail` text NOT NULL,
  `state` varchar(16) NOT NULL,
  `found_at` bigint(20) NOT NULL,
  `corrections` int(11) NOT NULL DEFAULT 0,
  PRIMARY KEY (`id`),
  UNIQUE KEY `target_schema` (`target_schema`,`target_table`,`digest`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `uncoordinated_validation` WRITE;
/*!40000 ALTER TABLE `uncoordinated_validation` DISABLE KEYS */;
/*!40000 ALTER TABLE `uncoordinated_validation` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `uncoordinated_verification`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `uncoordinated_verification` (
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `verified_at` bigint(20) NOT NULL,
  `compared` bigint(20) NOT NULL,
  `differing` bigint(20) NOT NULL,
  `progress` longtext NOT NULL,
  PRIMARY KEY (`target_schema`,`target_table`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `uncoordinated_verification` WRITE;
/*!40000 ALTER TABLE `uncoordinated_verification` DISABLE KEYS */;
/*!40000 ALTER TABLE `uncoordinated_verification` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `uncoordinated_watermark`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `uncoordinated_watermark` (
  `source` varchar(64) NOT NULL,
  `target_schema` varchar(64) NOT NULL,
  `target_table` varchar(64) NOT NULL,
  `bucket` smallint(6) NOT NULL,
  `version` int(11) NOT NULL,
  `transaction_key` bigint(20) NOT NULL,
  `ordinal` bigint(20) NOT NULL,
  `token` bigint(20) NOT NULL DEFAULT 0,
  `gtid` longtext DEFAULT NULL,
  `anchor` text DEFAULT NULL,
  PRIMARY KEY (`source`,`target_schema`,`target_table`,`bucket`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `uncoordinated_watermark` WRITE;
/*!40000 ALTER TABLE `uncoordinated_watermark` DISABLE KEYS */;
INSERT INTO `uncoordinated_watermark` VALUES
('a','mu','orders',-1,0,1099511635092,1,0,'0-4101-27',NULL),
('a','mu','orders',0,0,1099511635092,1,2500460718140292292,'0-4101-27','7316:1796069867:77054132:binlog.000001'),
('a','mu','orders',1,0,1099511634425,1,2500460718140292292,'0-4101-25','6899:1796069867:3903610411:binlog.000001'),
('a','mu','orders',2,0,0,0,2500460718140292292,NULL,NULL),
('a','mu','orders',3,0,0,0,2500460718140292292,NULL,NULL),
('b','mu','orders',-1,0,1099511631068,1,0,'0-4102-13',NULL),
('b','mu','orders',0,0,1099511630677,1,2500460718140292292,'0-4102-12','3137:1796069867:1440706613:binlog.000001'),
('b','mu','orders',1,0,1099511631068,1,2500460718140292292,'0-4102-13','3292:1796069867:3464117338:binlog.000001'),
('b','mu','orders',2,0,0,0,2500460718140292292,NULL,NULL),
('b','mu','orders',3,0,0,0,2500460718140292292,NULL,NULL);
/*!40000 ALTER TABLE `uncoordinated_watermark` ENABLE KEYS */;
UNLOCK TABLES;
/*!40103 SET TIME_ZONE=@OLD_TIME_ZONE */;

/*!40101 SET SQL_MODE=@OLD_SQL_MODE */;
/*!40014 SET FOREIGN_KEY_CHECKS=@OLD_FOREIGN_KEY_CHECKS */;
/*!40014 SET UNIQUE_CHECKS=@OLD_UNIQUE_CHECKS */;
/*!40101 SET CHARACTER_SET_CLIENT=@OLD_CHARACTER_SET_CLIENT */;
/*!40101 SET CHARACTER_SET_RESULTS=@OLD_CHARACTER_SET_RESULTS */;
/*!40101 SET COLLATION_CONNECTION=@OLD_COLLATION_CONNECTION */;
/*!40111 SET SQL_NOTES=@OLD_SQL_NOTES */;

