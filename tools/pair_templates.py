# ruff: noqa: E501 - a topic stands on few lines
"""Templates of memory-like statements in English and Chinese, from which `train_pairs.py` makes its pairs.

All of it was written for this purpose; nothing is taken from a data set. In a template, `S` is the subject, `P` its
possessive, `M` its object form, `V` the value; `live~` is inflected for the subject, `be~` is am or is, `have~` has or
have. A topic belongs to `one` (one value at a time), `many`, or `event` (what happened; two of them do not contradict).
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Topic:
    """What is said of a subject: ways to say it, ways to deny it, values that exclude each other when `one`."""

    name: str
    arity: str
    says: tuple[str, ...]
    values: tuple[str, ...]
    denies: tuple[str, ...] = ()
    of_things: bool = False


ENGLISH = (
    Topic("lives", "one", ("S live~ in V.", "S reside~ in V now.", "P apartment is in V.", "S have~ settled in V.",
          "The city where S live~ is V.", "S be~ currently living in V.", "S call~ V home."),
          ("Bergen", "Porto", "Calgary", "Nagoya", "Bristol", "Graz", "New Haven", "San Diego"),
          ("S do~ not live in V.", "S no longer live~ in V.")),
    Topic("hometown", "one", ("S be~ originally from V.", "S grew up in V.", "P hometown is V.", "S come~ from V."),
          ("Cork", "Malmo", "Puebla", "Adelaide", "Turin", "Gdansk"), ("S be~ not from V.",)),
    Topic("birthday", "one", ("P birthday is V.", "S was born on V.", "P date of birth is V.", "P birthday falls on V.",
          "V is P birthday.", "S celebrate~ P birthday on V."),
          ("May 4", "June 17", "22 August", "9 January", "30 September", "February 14"), ("P birthday is not V.",)),
    Topic("age", "one", ("S be~ V years old.", "P age is V.", "S turned V this year.", "S be~ a V-year-old."),
          ("24", "31", "38", "45", "52", "67"), ("S be~ not V years old.",)),
    Topic("job", "one", ("S work~ as a V.", "P job is V.", "S make~ a living as a V.", "S be~ a V by trade.",
          "S be~ employed as a V.", "By profession, S be~ a V.", "P occupation is V."),
          ("plumber", "librarian", "tax adviser", "radiologist", "bus driver", "florist", "translator", "civil engineer"),
          ("S do~ not work as a V.", "S be~ not a V.")),
    Topic("employer", "one", ("S work~ for V.", "S work~ at V.", "P employer is V.", "S be~ employed by V."),
          ("Northwind", "Halden Foods", "Bluepeak", "Ostrava Steel", "Marlow & Finch", "Kestrel Labs"), ("S do~ not work for V.",)),
    Topic("allergy", "many", ("S be~ allergic to V.", "S have~ an allergy to V.", "S can't eat V due to an allergy.",
          "V triggers P allergy.", "S suffer~ from a V allergy."),
          ("strawberries", "walnuts", "soy", "eggs", "wheat", "kiwi"), ("S be~ not allergic to V.", "S have~ no allergy to V.")),
    Topic("likes", "many", ("S like~ V.", "S be~ fond of V.", "S really enjoy~ V.", "S be~ a big fan of V.", "P hobby is V.",
          "S can't get enough of V.", "V is one of the things S love~."),
          ("climbing", "chess", "gardening", "jazz", "pottery", "opera", "sushi", "mountain biking", "crosswords"),
          ("S do~ not like V.", "S hate~ V.", "S can't stand V.")),
    Topic("favourite colour", "one", ("P favourite colour is V.", "V is P favourite colour.", "The colour S like~ best is V.",
          "Of all colours S like~ V best."), ("teal", "orange", "purple", "navy", "crimson"), ("P favourite colour is not V.",)),
    Topic("favourite dish", "one", ("P favourite dish is V.", "V is P favourite dish.", "The dish S love~ most is V."),
          ("paella", "pad thai", "goulash", "risotto", "tacos"), ()),
    Topic("car", "one", ("S drive~ a V.", "P car is a V.", "The car S own~ is a V.", "S be~ driving a V these days."),
          ("white Skoda", "green Fiat", "used Mazda", "hybrid Toyota", "black Audi"), ("S do~ not drive a V.",)),
    Topic("pet", "one", ("S have~ a V at home.", "P pet is a V.", "S keep~ a V as a pet.", "A V lives with M."),
          ("tabby cat named Olive", "husky named Bolt", "canary named Pip", "tortoise named Zeno"), ("S do~ not have a V at home.",)),
    Topic("marital", "one", ("S be~ V.", "P marital status is V.", "At the moment S be~ V."), ("single", "married", "divorced", "engaged"),
          ("S be~ not V.",)),
    Topic("phone", "one", ("P phone number is V.", "You can reach M at V.", "P mobile number is V.", "Call M on V.", "P number is V."),
          ("555-0142", "020 7946 0321", "+49 151 5550 177", "07700 900 456", "555-0199"), ("P phone number is not V.",)),
    Topic("email", "one", ("P email address is V.", "P e-mail is V.", "You can write to M at V."),
          ("rosa.k@mailbox.example", "t.olsen@post.example", "hello@kimura.example", "jb77@inbox.example"), ()),
    Topic("height", "one", ("S be~ V tall.", "P height is V.", "S measure~ V."), ("168 cm", "175 cm", "182 cm", "191 cm"), ()),
    Topic("language", "many", ("S speak~ V.", "S be~ fluent in V.", "S can speak V fluently."), ("Dutch", "Swahili", "Korean", "Greek", "Arabic"),
          ("S do~ not speak V.",)),
    Topic("diet", "one", ("S be~ V.", "P diet is V.", "S follow~ a V diet."), ("vegan", "vegetarian", "pescatarian"), ("S be~ not V.",)),
    Topic("wakes", "one", ("S get~ up at V.", "S wake~ up at V.", "P alarm is set for V."), ("5:30", "6:15", "7:00", "8:45"), ("S do~ not get up at V.",)),
    Topic("instrument", "many", ("S play~ the V.", "S have~ been playing the V for years.", "S know~ how to play the V."),
          ("cello", "banjo", "trumpet", "piano", "drums"), ("S do~ not play the V.",)),
    Topic("school", "one", ("S graduated from V.", "S went to V.", "P alma mater is V."),
          ("Leiden University", "Aalto University", "Boston College", "the University of Cape Town"), ()),
    Topic("spouse", "one", ("S be~ married to V.", "P spouse is V.", "P husband or wife is V."), ("Lena", "Marco", "Priya", "Owen"), ()),
    Topic("blood type", "one", ("P blood type is V.", "S have~ blood type V.", "V is the blood type of M."), ("A positive", "O negative", "B positive", "AB negative"), ()),
    Topic("shoe size", "one", ("P shoe size is V.", "S wear~ size V shoes.", "S take~ a V in shoes."), ("38", "41", "43", "45"), ()),
    Topic("password", "one", ("P laptop password is V.", "The password of P laptop is V.", "P laptop unlocks with V."), ("maple77", "r1verbed", "Tz-4410", "quiet.fox"), ()),
    Topic("dentist", "one", ("P dentist is Dr V.", "S see~ Dr V for P teeth.", "Dr V is the dentist who treats M."), ("Haas", "Okafor", "Lindqvist", "Moretti"), ()),
    Topic("gym", "one", ("S train~ at the V gym.", "P gym is the V.", "S be~ a member of the V gym."), ("Ironworks", "Flexhouse", "Pulse", "Vertical"), ()),
    Topic("seat", "one", ("S prefer~ V seats on flights.", "When flying, S always take~ the V seat.", "S want~ a V seat on planes."), ("aisle", "window", "middle"), ()),
    Topic("coffee", "one", ("S take~ P coffee with V.", "S drink~ coffee with V.", "P coffee always has V in it."), ("oat milk", "two sugars", "cream", "cinnamon"), ()),
    Topic("deadline", "one", ("The deadline of P project is V.", "P project is due on V.", "P project has to be finished by V."), ("Monday", "Thursday", "12 April", "3 November"), ()),
    Topic("team meeting", "one", ("P team meets on V.", "The weekly meeting of P team is on V.", "P team meeting takes place every V."), ("Tuesday", "Wednesday", "Friday"), ()),
    Topic("database", "one", ("P service runs on V.", "P service uses V as its database.", "The database behind P service is V."), ("Postgres", "MongoDB", "Redis", "Cassandra"), ()),
    Topic("opens", "one", ("S open~ at V.", "S's opening time is V.", "The opening time of S is V."), ("7:30", "8 am", "9:15", "10 o'clock"), ("S do~ not open at V.",), of_things=True),
    Topic("room", "one", ("S be~ in room V.", "S's room is V.", "You find M in room V."), ("101", "B12", "304", "the basement"), ("S be~ not in room V.",), of_things=True),
    Topic("price", "one", ("S cost~ V.", "S's price is V.", "The price of S is V."), ("40 euros", "55 euros", "120 dollars", "99 pounds"), (), of_things=True),
    Topic("in charge", "one", ("V be~ in charge of M.", "V look~ after M.", "S be~ managed by V."), ("Ines", "Rahul", "Greta", "Tom"), (), of_things=True),
    Topic("colour", "one", ("S be~ V.", "S's colour is V.", "The colour of S is V."), ("white", "grey", "yellow", "blue"), ("S be~ not V.",), of_things=True),
    Topic("run", "event", ("S ran V on Monday.", "On Monday S did a run of V.", "S went for a V run on Monday."), ("5 km", "8 km", "12 km"), ()),
    Topic("visit", "event", ("S visited V last weekend.", "Last weekend S took a trip to V.", "S went to V last weekend."), ("Lyon", "Ghent", "Seville", "Krakow"), ()),
    Topic("bought", "event", ("S bought a V yesterday.", "Yesterday S got a new V.", "S picked up a V yesterday."), ("toaster", "tent", "keyboard", "lamp"), ()),
    Topic("met", "event", ("S met V for lunch.", "S had lunch with V.", "S and V went out for lunch."), ("Karin", "Felix", "Noor", "Diego"), ()),
    Topic("read", "event", ("S finished reading V.", "S has just read V.", "S got to the end of V."), ("Dune", "Emma", "Middlemarch", "Beloved"), ()),
)  # fmt: skip
ENGLISH_SUBJECTS = (
    "I", "My brother", "My aunt", "My manager", "My flatmate", "My daughter", "My husband", "My grandfather", "My cousin",
    "My best friend", "Clara", "Tobias", "Mrs Lindgren", "Imani",
)  # fmt: skip
ENGLISH_THINGS = (
    "The Berlin office",
    "The staging server",
    "The printer",
    "The annual report",
    "The night train",
    "The canteen",
    "Host db-3",
    "Host db-7",
    "Ticket OPS-12",
    "Ticket OPS-21",
    "Order 88123",
    "Order 88132",
    "Item 3",
    "Item 17",
    "Machine 4",
    "Machine 9",
)
CHINESE = (
    Topic("lives", "one", ("S住在V。", "S家在V。", "S现在住V。", "S搬到V了。", "S定居在V。", "S目前在V定居。"), ("昆明", "厦门", "西安", "大连", "无锡", "珠海", "桂林"),
          ("S不住在V。", "S不住V了。")),
    Topic("hometown", "one", ("S老家是V的。", "S的家乡在V。", "S是V人。", "S来自V。", "P祖籍是V。"), ("湖南长沙", "福建泉州", "云南大理", "江西赣州", "甘肃兰州", "河北保定"),
          ("S老家不是V的。",)),
    Topic("birthday", "one", ("P生日是V。", "S是V出生的。", "P生日在V。", "S过生日是V。", "V是P生日。", "S的出生日期是V。"), ("三月八号", "7月16日", "11月2号", "九月二十号", "5月30日", "1月9号"),
          ("P生日不是V。",)),
    Topic("age", "one", ("S今年V岁。", "S的年龄是V岁。", "S已经V岁了。", "S现在V岁。", "S都V岁啦。"), ("23", "34", "41", "56", "六十", "二十九"), ("S不是V岁。",)),
    Topic("height", "one", ("S身高V。", "P身高是V。", "S个头有V。", "S的个子V左右。", "S有V高。"), ("168厘米", "172cm", "一米八", "159厘米", "185公分"), ()),
    Topic("weight", "one", ("S体重V。", "P体重是V。", "S现在重V。"), ("55公斤", "62公斤", "130斤", "78公斤"), ()),
    Topic("phone", "one", ("P手机号是V。", "P电话是V。", "S的联系电话：V。", "可以打S的手机V。", "S的手机号码是V。"), ("13911112222", "15800001234", "18622223333", "17755556666"), ("P手机号不是V。",)),
    Topic("email", "one", ("P邮箱是V。", "P邮箱地址是V。", "S的电子邮箱：V。"), ("xiaozhou@post.example", "lin_mei@mail.example", "ab2020@box.example"), ()),
    Topic("job", "one", ("S是做V的。", "P职业是V。", "S是个V。", "S是一名V。", "S在当V。", "P工作是V。", "S从事V的工作。"), ("护士", "司机", "会计", "记者", "翻译", "厨师", "木匠", "摄影师"),
          ("S不是V。", "S不做V了。")),
    Topic("title", "one", ("P职位是V。", "S担任V。", "S是V。", "P职务是V。", "S现在的岗位是V。"), ("市场总监", "财务主管", "项目经理", "护士长", "总编辑"), ("S不担任V了。",)),
    Topic("employer", "one", ("P单位是V。", "P公司叫V。", "S就职于V。", "P工作单位是V。", "S单位名称叫V。"), ("云帆科技有限公司", "长宁区第二小学", "同济出版社", "海棠酒店", "北辰银行"), ("S不在V上班了。",)),
    Topic("workplace", "one", ("S在V上班。", "S在V工作。", "P工作地点是V。", "S上班的地方在V。", "S的工作地是V。"), ("合肥", "东莞", "宁波", "长春", "太原", "南昌"), ("S不在V上班了。",)),
    Topic("education", "one", ("P学历是V。", "S是V毕业。", "S有V学历。", "S读到V。", "P文凭是V。"), ("本科", "硕士", "高中", "大专", "博士"), ("P学历不是V。",)),
    Topic("likes", "many", ("S喜欢V。", "S特别爱V。", "P爱好是V。", "S对V很感兴趣。", "S平时喜欢V。", "S热衷于V。", "P兴趣是V。"), ("书法", "爬山", "打羽毛球", "拼图", "养花", "听评书", "骑车", "弹吉他"),
          ("S不喜欢V。", "S讨厌V。", "S对V不感兴趣。")),
    Topic("allergy", "many", ("S对V过敏。", "S吃V会过敏。", "P过敏原是V。"), ("芒果", "虾", "牛奶", "鸡蛋", "花粉"), ("S对V不过敏。",)),
    Topic("favourite colour", "one", ("P最喜欢的颜色是V。", "S最爱的颜色是V。", "V是S最喜欢的颜色。"), ("紫色", "橙色", "墨绿色", "粉色"), ("P最喜欢的颜色不是V。",)),
    Topic("car", "one", ("S开V。", "P车是V。", "S开的是V。", "S现在开一辆V。"), ("大众", "比亚迪", "丰田", "红旗"), ("S不开V了。",)),
    Topic("pet", "one", ("S养了V。", "P宠物是V。", "S家里养着V。"), ("一只橘猫", "两只仓鼠", "一条金毛", "一只鹦鹉"), ("S没有养V。",)),
    Topic("name", "one", ("P名字叫V。", "S叫V。", "P全名是V。"), ("周晓岚", "马志远", "郑可欣", "丁一鸣"), ("S不叫V。",)),
    Topic("marital", "one", ("S是V。", "S现在V。", "P婚姻状况是V。"), ("单身", "已婚", "离异"), ("S不是V。",)),
    Topic("language", "many", ("S会说V。", "S精通V。", "S能说V。"), ("粤语", "法语", "韩语", "西班牙语"), ("S不会说V。",)),
    Topic("wakes", "one", ("S每天V起床。", "S一般V钟起床。", "P起床时间是V。"), ("六点", "七点半", "早上五点", "八点"), ()),
    Topic("blood type", "one", ("P血型是V。", "S是V血。", "S的血型为V。"), ("a型", "b型", "o型", "ab型"), ()),
    Topic("plate", "one", ("P车牌号是V。", "S的车牌是V。", "P车挂的牌是V。"), ("沪A8F212", "粤B55Q90", "川A03K77"), ()),
    Topic("password", "one", ("P电脑密码是V。", "S的电脑密码设成了V。", "打开P电脑要输V。"), ("qingtian88", "m4ple", "hehua-2020"), ()),
    Topic("favourite team", "one", ("S支持V。", "S是V的球迷。", "P主队是V。"), ("申花队", "国安队", "皇马", "湖人队"), ("S不支持V。",)),
    Topic("deadline", "one", ("P项目的截止日期是V。", "P项目V截止。", "P项目要在V前完成。"), ("周一", "周四", "4月12日", "下个月三号"), ()),
    Topic("meeting", "one", ("P小组例会在V。", "P小组每V开例会。", "S的小组例会定在V。"), ("周二", "周三", "周五"), ()),
    Topic("database", "one", ("P服务用的是V。", "P服务跑在V上。", "P服务的数据库是V。"), ("MySQL", "MongoDB", "Redis", "Oracle"), ()),
    Topic("coffee", "one", ("S喝咖啡加V。", "P咖啡里要放V。", "S的咖啡总是加V。"), ("燕麦奶", "两块糖", "肉桂", "奶油"), ()),
    Topic("seat", "one", ("S坐飞机要靠V的座位。", "S坐飞机总选靠V的位子。", "S飞行时喜欢靠V坐。"), ("窗", "过道"), ()),
    Topic("opens", "one", ("SV开门。", "S的开放时间是V。", "SV开。"), ("七点半", "8点", "9点", "十点"), ("S不是V开门。",), of_things=True),
    Topic("room", "one", ("S在V房间。", "S的房间号是V。", "S放在V。"), ("101", "B12", "304", "地下室"), ("S不在V房间。",), of_things=True),
    Topic("price", "one", ("S要V。", "S的价格是V。", "S卖V。"), ("40元", "55元", "120元", "九十块"), (), of_things=True),
    Topic("in charge", "one", ("S由V负责。", "S的负责人是V。", "V负责S。"), ("小孟", "谢红", "老齐", "阿杰"), ("S不由V负责。",), of_things=True),
    Topic("port", "one", ("S的端口是V。", "S用V端口。", "S监听V端口。"), ("8080", "5432", "443", "9000"), ("S的端口不是V。",), of_things=True),
    Topic("run", "event", ("S周一跑了V。", "周一S跑步V。", "S周一去跑了V。"), ("五公里", "8公里", "十二公里"), ()),
    Topic("visit", "event", ("S上周末去了V。", "上周末S到V玩了一趟。", "S上周末在V旅游。"), ("丽江", "黄山", "三亚", "洛阳"), ()),
    Topic("bought", "event", ("S昨天买了V。", "昨天S新买了V。", "S昨天入手了V。"), ("一个烤箱", "一顶帐篷", "一把键盘", "一盏台灯"), ()),
    Topic("met", "event", ("S和V吃了午饭。", "S中午跟V一起吃饭了。", "S约V吃了午饭。"), ("老赵", "小魏", "钱工", "阿丽"), ()),
)  # fmt: skip
CHINESE_SUBJECTS = (
    "我", "我弟弟", "我爷爷", "我姨妈", "我老板", "我邻居", "我女儿", "我老公", "我室友", "我堂姐", "我舅舅", "我的一个客户", "小郭", "老陈", "何静",
)  # fmt: skip
CHINESE_THINGS = (
    "测试服务器",
    "打印机",
    "年度报告",
    "北京办公室",
    "食堂",
    "备用网关",
    "工单A-102",
    "工单A-120",
    "订单88123",
    "订单88132",
    "三号机",
    "五号机",
    "第12批货",
    "第15批货",
)
OPENINGS = {
    "en": ("", "", "", "", "Actually, ", "By the way, ", "Remember that "),
    "zh": ("", "", "", "", "对了，", "其实", "请记住，"),
}
ENDINGS = {"en": (".", ".", ".", "!", ""), "zh": ("。", "。", "", "！", "呢。", "啊。")}
UNREAL = {"en": ("S want~ to move to V.", "S might move to V one day.", "S used to live in V.", "S once lived in V."),
          "zh": ("S想搬到V去。", "S也许会搬到V。", "S以前住在V。", "S曾经住过V。")}  # fmt: skip
"""Of the topic `lives`: neither repeats nor contradicts where somebody lives."""
